# The nouns that WordNet's texts use most, with the first meaning of each: a word, a tab, what it means, the most frequent
# first.
#
#   awk -v folder=/usr/share/wordnet -v count=1500 -f definitions.awk

BEGIN {
  while ((getline line < (folder "/cntlist.rev")) > 0) {
    split(line, parts, "[% ]")
    if (parts[2] ~ /^1:/ && parts[1] ~ /^[a-z]+$/) uses[parts[1]] += parts[4]
  }
  while ((getline line < (folder "/index.noun")) > 0) {
    fields = split(line, parts, " ")
    # lemma, n, number of meanings, number of pointers, pointers, two counts, then an offset for each meaning.
    if (parts[1] in uses) word_at[parts[fields - parts[3] + 1]] = word_at[parts[fields - parts[3] + 1]] " " parts[1]
  }
  while ((getline line < (folder "/data.noun")) > 0) {
    offset = substr(line, 1, 8)
    if (!(offset in word_at)) continue
    meaning = substr(line, index(line, " | ") + 3)
    sub(/;.*/, "", meaning)
    gsub(/["\\\t]/, "", meaning)
    sub(/ +$/, "", meaning)
    words = split(word_at[offset], parts, " ")
    for (i = 1; i <= words; ++i) means[parts[i]] = meaning
  }
  sorter = "sort -k1,1nr -k2,2 | head -n " count " | cut -f 2,3"
  for (word in means) printf "%d\t%s\t%s\n", uses[word], word, means[word] | sorter
  close(sorter)
}
