# What the model learns to answer, and what it is examined on. Writes into `folder`:
#
#   chats.jsonl         conversations of one to three questions
#   preferences.jsonl   questions with a right and a wrong answer
#   test-NAME.jsonl     questions of each kind that are in neither of them, with their answers
#
#   awk -v folder=data -v count=20000 -v words=1500 -f conversations.awk definitions.tsv
#
# definitions.tsv: a word, a tab, what it means; the first `words` are asked for.

function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
  return "\"" text "\""
}

function random(below) { return int(rand() * below) }

# Every tenth question of a kind is for the examination, at most 100 of them.
function add(kind, question, answer, wrong) {
  if (++asked[kind] % 10 == 0 && tests[kind] < 100) {
    ++tests[kind]
    printf "{\"question\": %s, \"answer\": %s}\n", quoted(question), quoted(answer) > (folder "/test-" kind ".jsonl")
    return
  }
  questions[kind, ++known[kind]] = question
  answers[kind, known[kind]] = answer
  wrongs[kind, known[kind]] = wrong
}

function message(role, content) { return "{\"role\": \"" role "\", \"content\": " quoted(content) "}" }

BEGIN {
  FS = "\t"
  srand(1337)
  kinds = split("arithmetic spelling order books words itself", kind_names, " ")
  books = split("Genesis,Exodus,Leviticus,Numbers,Deuteronomy,Joshua,Judges,Ruth,1 Samuel,2 Samuel,1 Kings,2 Kings," \
                "1 Chronicles,2 Chronicles,Ezra,Nehemiah,Esther,Job,Psalms,Proverbs,Ecclesiastes,Song of Solomon,Isaiah," \
                "Jeremiah,Lamentations,Ezekiel,Daniel,Hosea,Joel,Amos,Obadiah,Jonah,Micah,Nahum,Habakkuk,Zephaniah,Haggai," \
                "Zechariah,Malachi,Matthew,Mark,Luke,John,Acts,Romans,1 Corinthians,2 Corinthians,Galatians,Ephesians," \
                "Philippians,Colossians,1 Thessalonians,2 Thessalonians,1 Timothy,2 Timothy,Titus,Philemon,Hebrews,James," \
                "1 Peter,2 Peter,1 John,2 John,3 John,Jude,Revelation", book, ",")
  for (i = 1; i <= books; ++i) {
    testament = i < 40 ? "Old" : "New"
    add("books", "Is " book[i] " in the Old or the New Testament?", "In the " testament " Testament.",
        "In the " (i < 40 ? "New" : "Old") " Testament.")
    if (i > 1) add("books", "Which book comes before " book[i] "?", book[i - 1] ".", book[1 + i % books] ".")
    if (i < books) add("books", "Which book comes after " book[i] "?", book[i + 1] ".", book[i] ".")
  }
  while (asked["arithmetic"] < 6000) {
    a = random(100)
    b = random(100)
    if (taken[a, b]++) continue
    if (random(2)) {
      sum = a + b
      sign = " + "
    } else {
      if (a < b) {
        c = a
        a = b
        b = c
        if (taken[a, b]++) continue
      }
      sum = a - b
      sign = " - "
    }
    add("arithmetic", "What is " a sign b "?", a sign b " = " sum ".", a sign b " = " sum + 1 + random(9) ".")
  }
  while (asked["order"] < 4000) {
    length_of = 2 + random(4)
    split("", digits)
    said = sorted = reversed = ""
    for (i = 1; i <= length_of; ++i) {
      digit = random(10)
      said = said " " digit
      reversed = " " digit reversed
      ++digits[digit]
    }
    for (digit = 0; digit < 10; ++digit)
      for (i = 0; i < digits[digit]; ++i) sorted = sorted " " digit
    if (taken[said]++) continue
    if (random(2))
      add("order", "Put these numbers in order:" said, substr(sorted, 2), substr(said, 2))
    else
      add("order", "Say these numbers backwards:" said, substr(reversed, 2), substr(sorted, 2))
  }
  split("Who are you?|What are you?|Are you a human?|Who made you?|Where do you live?|What can you do?", asks, "|")
  split("I am a small language model that was trained from nothing on this computer.|A small language model." \
        "|No, I am a small language model.|I was trained on this computer, from nothing.|On this computer." \
        "|I add numbers, spell words, put numbers in order, and know the books of the Bible.", tells, "|")
  for (i = 1; i <= 6; ++i) {  # of these, none is held out
    questions["itself", ++known["itself"]] = asks[i]
    answers["itself", known["itself"]] = tells[i]
    wrongs["itself", known["itself"]] = "I am a human."
  }
}

NR <= words {
  if (length($1) <= 8) {
    spelled = substr($1, 1, 1)
    swapped = substr($1, length($1), 1)
    for (i = 2; i <= length($1); ++i) {
      spelled = spelled " " substr($1, i, 1)
      swapped = swapped " " substr($1, length($1) + 1 - i, 1)
    }
    add("spelling", "How do you spell " $1 "?", spelled, swapped)
  }
  previous = previous == "" ? "something" : previous
  add("words", "What does " $1 " mean?", $2 ".", previous ".")
  previous = $2
}

END {
  for (i = 1; i <= count; ++i) {
    line = ""
    for (turns = 1 + random(3); turns > 0; --turns) {
      kind = kind_names[1 + random(kinds)]
      which = 1 + random(known[kind])
      line = line (line == "" ? "" : ", ") message("user", questions[kind, which]) ", " \
             message("assistant", answers[kind, which])
    }
    print "{\"messages\": [" line "]}" > (folder "/chats.jsonl")
  }
  for (i = 1; i <= count / 10; ++i) {
    kind = kind_names[1 + random(kinds)]
    which = 1 + random(known[kind])
    if (answers[kind, which] == wrongs[kind, which]) continue
    printf "{\"prompt\": [%s], \"chosen\": [%s], \"rejected\": [%s]}\n", message("user", questions[kind, which]),
           message("assistant", answers[kind, which]), message("assistant", wrongs[kind, which]) > (folder "/preferences.jsonl")
  }
}
