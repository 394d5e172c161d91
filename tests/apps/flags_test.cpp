#include "apps/command/flags.h"

#include <map>

#include <nlohmann/json.hpp>

#include "tests/apps/sample_verb.h"

using namespace zoo;
using namespace zoo::test;

TEST_CASE("without words every flag keeps its default") {
  SampleVerb verb;
  CHECK(verb.parse({}));
  CHECK(verb.max_iters == 2000);
  CHECK_FALSE(verb.top_k.has_value());
  CHECK_FALSE(verb.flags.given("max_iters"));
}

TEST_CASE("dashes and underscores are the same in names but not in values") {
  SampleVerb verb;
  CHECK(verb.parse({"--max-iters", "3", "--top_k=4", "--out-dir=my-run_1", "--name", "a-b_c"}));
  CHECK(verb.max_iters == 3);
  CHECK(verb.top_k == 4);
  CHECK(verb.out_dir == "my-run_1");
  CHECK(verb.name == "a-b_c");
  CHECK(verb.flags.given("out_dir"));
}

TEST_CASE("a value may be negative, empty, JSON, or look like an unknown flag") {
  SampleVerb verb;
  CHECK(verb.parse({"--top_k", "-5", "--name", "", "--prompt", "[[1,2],[3]]", "--prompt={}", "--prompt",
                    "--- x=1", "--top_p=1e-3"}));
  CHECK(verb.top_k == -5);
  CHECK(verb.name.empty());
  CHECK(verb.prompts == std::vector<std::string>{"[[1,2],[3]]", "{}", "--- x=1"});
  CHECK(verb.top_p == 1e-3);
}

TEST_CASE("a value after an equals sign keeps further equals signs") {
  SampleVerb verb;
  CHECK(verb.parse({"--name=a=b"}));
  CHECK(verb.name == "a=b");
}

TEST_CASE("booleans are written in five ways") {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--json"}, {"--json", "true"}, {"--json=true"}, {"--json", "True"}, {"--no_json", "--json"}}) {
    bool as_json = false;
    Flags flags("tzoo verb", "");
    flags.add("json", as_json, "");
    CHECK(flags.parse({"tzoo verb", words}));
    CHECK(as_json);
  }
  for (const auto& words : std::vector<std::vector<std::string>>{{"--no_bias"},
                                                                 {"--no-bias"},
                                                                 {"--bias", "false"},
                                                                 {"--bias=false"},
                                                                 {"--bias", "False"},
                                                                 {"--bias", "--no_bias"}}) {
    SampleVerb verb;
    CHECK(verb.parse(words));
    CHECK_FALSE(verb.bias);
  }
  CHECK(fault_of({"--bias=maybe"}) == "--bias: expected true or false, got 'maybe'");
  CHECK(fault_of({"--no_bias=true"}) == "--no_bias takes no value");
}

TEST_CASE("a boolean does not take the argument that follows it") {
  std::string file;
  bool json_wanted = false;
  Flags flags("tzoo verb", "");
  flags.positional("file", file, "what to read", {.required = true});
  flags.add("json", json_wanted, "");
  CHECK(flags.parse({"tzoo verb", {"--json", "x.txt"}}));
  CHECK(json_wanted);
  CHECK(file == "x.txt");
}

TEST_CASE("the last of several values wins and a list keeps them all") {
  SampleVerb verb;
  CHECK(verb.parse({"--max_iters", "3", "--prompt", "a", "--max-iters=4", "--prompt", "b"}));
  CHECK(verb.max_iters == 4);
  CHECK(verb.prompts == std::vector<std::string>{"a", "b"});
}

TEST_CASE("an unknown flag is named as it was written, with the nearest that exists") {
  CHECK(fault_of({"--max_iter", "3"}) == "unknown flag '--max_iter'; did you mean '--max_iters'?");
  CHECK(fault_of({"--max-iter=3"}) == "unknown flag '--max-iter'; did you mean '--max_iters'?");
  CHECK(fault_of({"--no_bais"}) == "unknown flag '--no_bais'; did you mean '--no_bias'?");
  CHECK(fault_of({"--max"}) == "unknown flag '--max'; did you mean '--max_iters'?");
  CHECK(fault_of({"--max_steps", "3"}) == "unknown flag '--max_steps'; did you mean '--max_iters'?");
  CHECK(fault_of({"-o", "x"}) == "unknown flag '-o'; did you mean '--out_dir'?");
  CHECK(fault_of({"--zzz"}) == "unknown flag '--zzz'; 'tzoo verb --help' lists them");
  CHECK(fault_of({"-n", "3"}).starts_with("unknown flag '-n'"));
  CHECK(fault_of({"-max_iters", "3"}) == "unknown flag '-max_iters'; did you mean '--max_iters'?");
  CHECK(fault_of({"--no_name"}).starts_with("unknown flag '--no_name'"));
}

TEST_CASE("a value of the wrong type or range says what was expected") {
  CHECK(fault_of({"--max_iters", "ten"}) == "--max_iters: expected an integer, got 'ten'");
  CHECK(fault_of({"--max_iters=1.5"}) == "--max_iters: expected an integer, got '1.5'");
  CHECK(fault_of({"--max_iters", "99999999999999999999"}) ==
        "--max_iters: expected an integer, got '99999999999999999999'");
  CHECK(fault_of({"--max_iters", "0"}) == "--max_iters: expected an integer of at least 1, got '0'");
  CHECK(fault_of({"--max_iters", "9223372036854775807"}) ==
        "--max_iters: expected an integer of at most 2147483647, got '9223372036854775807'");
  CHECK(fault_of({"--top_k", "-2147483648"}).starts_with("--top_k: expected an integer"));
  CHECK(fault_of({"--dropout", "1.5"}) == "--dropout: expected a number between 0 and 1, got '1.5'");
  CHECK(fault_of({"--top_p", "0"}) == "--top_p: expected a number above 0, got '0'");
  CHECK(fault_of({"--top_p", "nan"}) == "--top_p: expected a number, got 'nan'");
  CHECK(fault_of({"--top_p", "0x10"}) == "--top_p: expected a number, got '0x10'");
  CHECK(fault_of({"--out_dir="}) == "--out_dir: expected a path, got ''");
  CHECK(fault_of({"--name", "\xff"}).starts_with("--name: expected text in UTF-8"));
}

TEST_CASE("a choice lists what there is and names the nearest") {
  CHECK(fault_of({"--format", "torchscrip"}) ==
        "--format: expected torchscript or huggingface, got 'torchscrip'; did you mean 'torchscript'?");
}

TEST_CASE("a flag without its value is a fault, also where another flag follows") {
  CHECK(fault_of({"--name"}) == "--name: expected text in UTF-8, got nothing");
  CHECK(fault_of({"--out_dir", "--max_iters", "3"}) == "--out_dir: expected a path, got nothing");
}

TEST_CASE("positional arguments are taken in order and a surplus one is a fault") {
  std::string first;
  std::vector<std::string> rest;
  Flags flags("tzoo verb", "");
  flags.positional("first", first, "the first", {.required = true});
  flags.positional("rest", rest, "the others");
  CHECK(flags.parse({"tzoo verb", {"a", "-", "-3", "--", "--help"}}));
  CHECK(first == "a");
  CHECK(rest == std::vector<std::string>{"-", "-3", "--help"});
  CHECK(fault_of({"surplus"}).starts_with("unexpected argument 'surplus'"));
}

TEST_CASE("what is required and not given is named") {
  const auto fault = [](std::vector<std::string> words) -> std::string {
    std::string model, name;
    Flags flags("tzoo verb", "");
    flags.positional("name", name, "what to fetch", {.required = true});
    flags.add("model", model, "folder of a checkpoint", {.required = true});
    try {
      flags.parse({"tzoo verb", std::move(words)});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no fault";
  };
  CHECK(fault({"--model", "x"}) == "missing argument 'name': what to fetch");
  CHECK(fault({"kjv"}) == "missing flag '--model': folder of a checkpoint");
  CHECK(fault({"kjv", "--model", "x"}) == "no fault");
}

TEST_CASE("a value that leads needs no flag, and is given once") {
  const auto answer = [](std::vector<std::string> words) -> std::string {
    std::string model;
    Flags flags("tzoo verb", "");
    flags.add("model", model, "folder of a checkpoint",
              {.placeholder = "DIR", .leads = true, .required = true});
    try {
      flags.parse({"tzoo verb", std::move(words)});
    } catch (const UsageError& error) {
      return error.what();
    }
    return model;
  };
  CHECK(answer({"gpt2"}) == "gpt2");
  CHECK(answer({"--model", "gpt2"}) == "gpt2");
  CHECK(answer({"gpt2", "bert"}) == "unexpected argument 'bert'; 'tzoo verb --help' shows what is expected");
  CHECK(answer({"--model", "gpt2", "bert"}).starts_with("unexpected argument 'bert'"));
  CHECK(answer({"bert", "--model", "gpt2"}) == "--model: given twice; expected one DIR");
  CHECK(answer({}) == "missing flag '--model': folder of a checkpoint");
}

TEST_CASE("a list that leads takes all words, with its flag or without") {
  std::vector<std::string> models;
  Flags flags("tzoo verb", "");
  flags.add("model", models, "folders of checkpoints", {.placeholder = "DIR", .leads = true});
  CHECK(flags.parse({"tzoo verb", {"gpt2", "--model", "bert", "t5"}}));
  CHECK(models == std::vector<std::string>{"gpt2", "bert", "t5"});
}

TEST_CASE("a flag that says no has no negation") {
  bool no_key = false;
  Flags flags("tzoo verb", "");
  flags.add("no_key", no_key, "asks for no key");
  CHECK_THROWS_WITH(flags.parse({"tzoo verb", {"--no_no_key"}}),
                    Catch::Contains("unknown flag '--no_no_key'"));
  CHECK(flags.parse({"tzoo verb", {"--no_key"}}));
  CHECK(no_key);
}

TEST_CASE("help shows groups, defaults and the example in at most 100 columns") {
  SampleVerb verb;
  verb.flags.group("Long");
  std::string text;
  verb.flags.add("a_flag_with_a_name_that_is_longer_than_the_column", text,
                 std::string(30, 'x') + " " + std::string(60, 'y'));
  const std::string help = printed(verb, {"--help", "--unknown"});
  CHECK_THAT(help, Catch::StartsWith("usage: tzoo verb [flags]\n\nDoes something.\n\nOptimizer\n"));
  CHECK_THAT(help, Catch::Contains("--max_iters N ") && Catch::Contains("iterations (default: 2000)"));
  CHECK_THAT(help, Catch::Contains("--[no_]bias ") && Catch::Contains("biases (default: true)"));
  CHECK_THAT(help, Catch::Contains("--format torchscript|huggingface") && Catch::Contains("--out_dir DIR"));
  CHECK_THAT(help, Catch::Contains("may be given several times"));
  CHECK_THAT(help, Catch::EndsWith("Example\n  tzoo verb --max_iters 3\n"));
  CHECK(help.find("General\n") > help.find("Model\n"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

TEST_CASE("a value that is called --help is no call for help") {
  SampleVerb verb;
  CHECK(verb.parse({"--name=--help", "--prompt=-h"}));
  CHECK(verb.name == "--help");
}

TEST_CASE("the flags of a verb that computes check their form") {
  const auto fault = [](std::vector<std::string> words) -> std::string {
    ComputeOptions options;
    Flags flags("tzoo verb", "");
    flags.add_compute(options);
    try {
      flags.parse({"tzoo verb", std::move(words)});
    } catch (const UsageError& error) {
      return error.what();
    }
    return options.device + " " + options.dtype;
  };
  CHECK(fault({}) == "auto float32");
  CHECK(fault({"--device", "cuda:1", "--dtype=bfloat16"}) == "cuda:1 bfloat16");
  CHECK(fault({"--device", "gpu"}) == "--device: expected auto, cpu, cuda or cuda:N, got 'gpu'");
  CHECK(fault({"--device", "cuda:"}) == "--device: expected auto, cpu, cuda or cuda:N, got 'cuda:'");
  CHECK(fault({"--threads", "0"}) == "--threads: expected an integer between 1 and 1024, got '0'");
  CHECK(fault({"--seed", "-1"}) == "--seed: expected an integer of at least 0, got '-1'");
}

TEST_CASE("a choice sets an enum by its name") {
  enum class Form { kRound, kFlat };
  Form form = Form::kRound;
  Flags flags("tzoo verb", "Does something.");
  flags.choice("form", form, {"round", "flat"}, "form");
  CHECK(flags.resolved()["form"] == "round");
  CHECK(flags.parse({"tzoo verb", {"--form", "flat"}}));
  CHECK(form == Form::kFlat);
  CHECK(flags.resolved()["form"] == "flat");
  CHECK_THROWS_WITH(flags.parse({"tzoo verb", {"--form", "flet"}}),
                    "--form: expected round or flat, got 'flet'; did you mean 'flat'?");
}

TEST_CASE("number formats have their usual short names") {
  ComputeOptions options;
  Flags flags("tzoo verb", "Computes.");
  flags.add_compute(options);
  for (const auto& [name, format] : std::map<std::string, std::string>{
           {"fp32", "float32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}, {"half", "float16"}}) {
    CHECK(flags.parse({"tzoo verb", {"--dtype", name}}));
    CHECK(options.dtype == format);
  }
}
