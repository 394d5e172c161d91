"""Every key that transformers writes for a family says something to the zoo: the defaults of each family's class give no note."""

import json
import os
import pathlib
import tempfile
import unittest

import transformers
from forward_parity import tzoo

FAMILIES = sorted(path.name for path in (pathlib.Path(__file__).parent.parent / "golden").iterdir() if (path / "base").is_dir())
DISENTANGLED = dict(relative_attention=True, share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
                    pos_att_type="p2c|c2p", position_buckets=8)


class ConfigKeysTest(unittest.TestCase):
    def test_defaults_give_no_note(self):
        self.assertGreater(len(FAMILIES), 30)
        for family in FAMILIES:
            config = transformers.AutoConfig.for_model(family, **(DISENTANGLED if family == "deberta-v2" else {}))
            with self.subTest(family=family), tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                    json.dump(config.to_dict(), file, default=str)
                done = tzoo("models", folder)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_other_names_of_a_familys_keys_count_as_in_transformers(self):
        shown = {"num_hidden_layers": "layers", "num_attention_heads": "heads", "hidden_size": "width"}
        tried = 0
        for family in FAMILIES:
            names = {name: own for name, own in transformers.CONFIG_MAPPING[family].attribute_map.items() if name in shown}
            for name, own in names.items():
                config = transformers.AutoConfig.for_model(family).to_dict()
                other = config[own] // 2
                if own == "encoder_attention_heads":
                    config["decoder_attention_heads"] = other
                for file in ({**config, name: other}, {**{key: value for key, value in config.items() if key != own}, name: other}):
                    with self.subTest(family=family, name=name, both=own in file), tempfile.TemporaryDirectory() as folder:
                        pathlib.Path(folder, "config.json").write_text(json.dumps(file, default=str))
                        self.assertEqual(getattr(transformers.AutoConfig.from_pretrained(folder), own), other)
                        done = tzoo("models", folder, "--json")
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
                        self.assertEqual(json.loads(done.stdout)[shown[name]], other)
                        tried += 1
        self.assertGreater(tried, 30)


if __name__ == "__main__":
    unittest.main()
