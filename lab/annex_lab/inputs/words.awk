# Counts words and neighbours of words, and prints the most common of each length.
{
  for (i = 1; i <= NF; i++) {
    count[$i]++
    if (i > 1) pair[$(i - 1), $i]++
    line = line substr($i, 1, 1)
  }
  if (NR % 100 == 0) { total += length(line); line = "" }
}
END {
  for (word in count) {
    n = length(word)
    if (count[word] > best[n] || (count[word] == best[n] && word < name[n])) { best[n] = count[word]; name[n] = word }
  }
  for (p in pair) pairs++
  for (n = 1; n <= 12; n++) print n, name[n], best[n]
  print total, pairs
}
