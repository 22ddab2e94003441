# SPDX-License-Identifier: MIT
# From a page to what it claims: an indented block that begins with "$ " is commands, each with what it prints. Writes
# script.sh, which prints each command as the page has it and runs it, and wanted.txt, the blocks. pictures=0 leaves
# out what makes pictures.
/^    \$ / {
    text = substr($0, 5)
    command = substr($0, 7)
    while (command ~ /\\$/ && (getline line) > 0) {
        text = text "\n" substr(line, 5)
        command = command "\n" line
    }
    inside = pictures || command !~ /\.png/
    if (inside) {
        printf "%s%s\n", blanks, text >"wanted.txt"
        printf "cat <<'END'\n%s\nEND\n%s\n", text, command >"script.sh"
    }
    blanks = ""
    next
}
inside && /^    / { printf "%s%s\n", blanks, substr($0, 5) >"wanted.txt"; blanks = ""; next }
inside && /^$/ { blanks = blanks "\n"; next }
{ inside = 0; blanks = "" }
