# The documents that the model reads first, one JSON object a line: each chapter of the Bible, and each meaning of a word.
#
#   awk -f texts.awk kjv.txt definitions.tsv
#
# definitions.tsv: a word, a tab, what it means.

function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
  gsub(/\n/, "\\n", text)
  return "{\"text\": \"" text "\"}"
}

function flush_chapter() {
  if (chapter != "") print quoted(chapter)
  chapter = ""
}

FILENAME ~ /\.tsv$/ {
  flush_chapter()
  split($0, parts, "\t")
  print quoted(parts[1] ": " parts[2] ".")
  next
}

/^[1-3]? ?[A-Z][A-Za-z ]* [0-9]+$/ { flush_chapter() }
{ chapter = chapter (chapter == "" ? "" : "\n") $0 }

END { flush_chapter() }
