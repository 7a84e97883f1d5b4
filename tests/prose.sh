#!/bin/bash
# Counts the phrases that STYLE.md discourages, and fails when a count differs from the one in tests/prose.counts. `--update` lowers
# the counts in that file; it never raises one. It reads line comments, string literals and names of tests in Rust, comments in
# shell, and Markdown outside of blocks between ```. It does not read /* */ comments and strings in shell.
set -euo pipefail
cd "$(dirname "$0")/.."
counts=tests/prose.counts
[ $# -eq 0 ] || [ "$*" = --update ] || { echo "usage: bash tests/prose.sh [--update]" >&2; exit 2; }

# STYLE.md quotes the phrases. The most recently modified files come first, so that a new phrase is among the places printed.
mapfile -d '' files < <(git ls-files -z -- '*.rs' '*.md' '*.sh' ':!STYLE.md')
mapfile -t files < <(ls -t -- "${files[@]}")

# mawk, the awk of Debian, has neither \b nor {n,m}: texts are lower-cased, except for `what`, and enclosed in spaces.
current=$(awk '
  BEGIN {
    phrase["what-subject"] = "(^ |[.;:!?] )What [a-z]"
    phrase["nobody"] = "[^a-z](nobody|somebody|whoever|everybody)[^a-z]"
    phrase["come"] = "[^a-z](come|comes|came)[^a-z]"
    phrase["one-that"] = "[^a-z](one that|that of|those of)[^a-z]"
    phrase["tell"] = "[^a-z](tell|tells|told)[^a-z]"
    phrase["beside"] = "[^a-z]besides?[^a-z]"
    phrase["go-on"] = "[^a-z](go|goes|went) on[^a-z]"
    phrase["is-none"] = "[^a-z](is|are|was|were) none[^a-z]"
    phrase["of-before"] = "[^a-z]of (before|now|today)[^a-z]"
    phrase["anew"] = "[^a-z]anew[^a-z]"
    phrase["but-for"] = "[^a-z]but for[^a-z]"
    phrase["is-away"] = "[^a-z](is|are|was|were) away[^a-z]"
    phrase["give-free"] = "[^a-z](give|gives|given|gave|giving) ([a-z]+ )?free[^a-z]"
    phrase["taken-for"] = "[^a-z]taken for[^a-z]"
    phrase["speaks-against"] = "[^a-z]speaks? against[^a-z]"
    for (name in phrase) found[name] = 0
  }

  # Adds a line to the text that is being collected. Lines of one text are joined: rewrapping changes no count.
  function collect(kind, words) {
    if (kind != collected) { count_phrases(); collected = kind }
    starts[++lines] = length(text); numbers[lines] = FNR; place = FILENAME
    text = text " " words
  }

  function count_phrases(   name, cased, rest, at, line) {
    if (text != "") {
      gsub(/[ \t]+/, " ", text)
      cased = text " "; text = tolower(cased)
      for (name in phrase) {
        rest = name == "what-subject" ? cased : text
        for (at = 0; match(rest, phrase[name]); rest = substr(rest, RSTART + RLENGTH - 1)) {
          found[name]++
          at += RSTART + RLENGTH - 2
          if (shown[name] < 10) {
            for (line = lines; line > 1 && starts[line] >= at - 1; line--);
            places[name, ++shown[name]] = place ":" numbers[line]
          }
        }
      }
    }
    text = ""; lines = 0; collected = ""
  }

  FNR == 1 { count_phrases(); literal = ""; is_test = 0; fence = 0
    rust = FILENAME ~ /\.rs$/; markdown = FILENAME ~ /\.md$/ }

  markdown {
    if ($0 ~ /^ *```/) { fence = !fence; count_phrases(); next }
    if (fence) next
    if ($0 ~ /^ *$|^ *([-*>#|]|[0-9]+\.)/) count_phrases()
    sub(/^[ >]*([-*|]|#+|[0-9]+\.) +/, "")
    collect("document", $0)
    next
  }

  !rust {
    if ($0 ~ /^[ \t]*#[^!]/) { sub(/^[ \t]*#+ */, ""); collect("comment", $0) }
    else if (match($0, /[ \t]# /)) { count_phrases(); collect("comment", substr($0, RSTART + 3)) }
    else count_phrases()
    next
  }

  # Rust: a comment line, or code with string literals, which may continue on the next lines.
  literal == "" && match($0, /^ *\/\/[\/!]? ?/) {
    words = substr($0, RSTART + RLENGTH)
    if (words == "") count_phrases(); else collect("comment", words)
    next
  }
  {
    rest = $0
    if (literal == "") {
      count_phrases()
      if (rest ~ /^ *#\[(tokio::)?test/) is_test = 1
      if (is_test && match(rest, /fn [a-z0-9_]+/)) {
        name = substr(rest, RSTART + 3, RLENGTH - 3); gsub(/_/, " ", name); sub(/^what /, "What ", name)
        collect("test name", name); count_phrases(); is_test = 0
      }
      gsub(/\x27\\?"\x27/, "", rest)
    }
    for (;;) {
      if (literal != "") {
        # Only in a raw literal is a backslash an ordinary character.
        length_inside = is_raw ? index(rest, literal) - 1 : match(rest, /^([^"\\]|\\.)*"/) ? RLENGTH - 1 : -1
        if (length_inside < 0) { collect("literal", rest); next }
        collect("literal", substr(rest, 1, length_inside)); count_phrases()
        rest = substr(rest, length_inside + length(literal) + 1); literal = ""
      }
      if (!match(rest, /\/\/ |"/)) next
      if (substr(rest, RSTART, 1) == "/") { collect("comment", substr(rest, RSTART + 3)); next }
      before = substr(rest, 1, RSTART - 1); rest = substr(rest, RSTART + 1)
      is_raw = match(before, /r#*$/); literal = "\"" (is_raw ? substr(before, RSTART + 1) : "")
    }
  }
  END {
    count_phrases()
    for (name in phrase) {
      printf "%s %d", name, found[name]
      for (i = 1; i <= shown[name]; i++) printf " %s", places[name, i]
      print ""
    }
  }' "${files[@]}" | sort)

declare -A limit
while read -r name count; do limit[$name]=$count; done < "$counts"
failed=0 updated=""
while read -r name count places; do
  before=${limit[$name]:-}
  updated+="$name $((count < ${before:-count} ? count : ${before:-count}))"$'\n'
  if [ -z "$before" ] && [ "${1:-}" = --update ]; then
    continue
  elif ((count > ${before:-0})); then
    failed=1
    echo "$name: $count times, $counts allows ${before:-none}. Rewrite the new text by STYLE.md; the phrase is, among others, in:" >&2
    xargs -n 1 printf '  %s\n' <<< "$places" >&2
  elif ((count < ${before:-0})) && [ "${1:-}" != --update ]; then
    failed=1
    echo "$name: $count times, $counts has $before. Run \`bash tests/prose.sh --update\` and commit $counts." >&2
  fi
done <<< "$current"
[ "${1:-}" != --update ] || printf %s "$updated" > "$counts"
exit "$failed"
