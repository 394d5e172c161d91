# A page in one file of the Markdown that report.sh writes: headings, tables, quotes, pictures, paragraphs.
#
#   awk -v folder=RUN -f page.awk RUN/report.md >RUN/report.html

function escaped(text) {
  gsub(/&/, "\\&amp;", text)
  gsub(/</, "\\&lt;", text)
  gsub(/>/, "\\&gt;", text)
  return text
}

function close_block() {
  if (open != "") print "</" open ">"
  open = ""
}

function begin(block) {
  if (open == block) return
  close_block()
  print "<" block ">"
  open = block
}

BEGIN {
  print "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">"
  print "<title>A model from nothing</title>\n<style>"
  print ":root { color-scheme: light dark }"
  print "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }"
  print "table { border-collapse: collapse } td, th { padding: .2rem 1rem .2rem 0; text-align: left; border-bottom: 1px solid #8886 }"
  print "blockquote { margin: 1rem 0 0; padding: .2rem 0 .2rem 1rem; border-left: 3px solid #4a7ab5 } img { max-width: 100%; background: #fff }"
  print "</style>"
}

/^\|---/ { next }
/^\|/ {
  cell = open == "table" ? "td" : "th"
  begin("table")
  count = split($0, cells, "|")
  row = "<tr>"
  for (i = 2; i < count; ++i) row = row "<" cell ">" escaped(cells[i])
  print row
  next
}
/^> ?/ {
  begin("blockquote")
  print escaped(substr($0, 3)) "<br>"
  next
}
{ close_block() }
/^# / { print "<h1>" escaped(substr($0, 3)) "</h1>"; next }
/^## / { print "<h2>" escaped(substr($0, 4)) "</h2>"; next }
/^!\[/ {
  match($0, /\[.*\]/)
  words = substr($0, RSTART + 1, RLENGTH - 2)
  match($0, /\(.*\)/)
  printf "<p><img alt=\"%s\" src=\"data:image/png;base64,", escaped(words)
  command = "base64 -w 0 '" folder "/" substr($0, RSTART + 1, RLENGTH - 2) "'"
  while ((command | getline line) > 0) printf "%s", line
  close(command)
  print "\"></p>"
  next
}
$0 != "" { print "<p>" escaped($0) "</p>" }
END { close_block() }
