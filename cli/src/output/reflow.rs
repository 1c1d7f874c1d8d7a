//! Markdown pages for a terminal: paragraphs and items of lists are wrapped again at its width. Code, tables and headings are as
//! they are.

use super::wrap;

/// Longest line of a wide terminal: longer ones are hard to read.
const WIDEST: usize = 132;

/// The page for a terminal of `width` columns.
pub(super) fn reflow(page: &str, width: usize) -> String {
    let width = width.min(WIDEST);
    let mut done = String::with_capacity(page.len() + page.len() / 16);
    // The text of a paragraph so far, and the indent of its further lines.
    let mut paragraph: Option<(String, usize)> = None;
    let (mut in_code, mut in_list, mut after_blank) = (false, false, true);
    for line in page.lines() {
        let indent = line.len() - line.trim_start().len();
        let begin = &line[indent..];
        let is_fence = begin.starts_with("```");
        let is_block = in_code
            || is_fence
            || begin.is_empty()
            || begin.starts_with(['|', '#', '>', '<'])
            || (after_blank && indent >= 4 && !in_list);
        if is_fence {
            in_code = !in_code;
        }
        let marker = if is_block { 0 } else { marker(begin) };
        match &mut paragraph {
            Some((text, _)) if !is_block && marker == 0 => {
                text.push(' ');
                text.push_str(begin.trim_end());
            }
            open => {
                flush(&mut done, open.take(), width);
                if is_block {
                    done.push_str(line);
                    done.push('\n');
                } else {
                    *open = Some((line.trim_end().to_owned(), indent + marker));
                }
            }
        }
        in_list = marker > 0 || (in_list && (begin.is_empty() || indent > 0 || !after_blank));
        after_blank = begin.is_empty();
    }
    flush(&mut done, paragraph, width);
    done
}

fn flush(done: &mut String, paragraph: Option<(String, usize)>, width: usize) {
    if let Some((text, indent)) = paragraph {
        done.push_str(&wrap::paragraph(&text, width, indent));
        done.push('\n');
    }
}

/// The length of the marker of a list's item with the space behind it; 0 for another line.
fn marker(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    match digits {
        0 if rest.starts_with("- ") || rest.starts_with("* ") => 2,
        1..=3 if rest.starts_with(". ") => digits + 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A heading that is longer than the terminal

A paragraph of
two lines.
- an item that goes on
  in a second line

  and a paragraph of it
  - an inner one, long enough
12. numbered, and long enough

| a | table that is longer than the terminal |
|---|---|

```sh
a command that is longer than the terminal
- and no item
```

    code by its indent, longer than the terminal
";

    #[test]
    fn paragraphs_and_items_are_wrapped_and_nothing_else() {
        let expected = "\
# A heading that is longer than the terminal

A paragraph of two
lines.
- an item that goes
  on in a second
  line

  and a paragraph of
  it
  - an inner one,
    long enough
12. numbered, and
    long enough

| a | table that is longer than the terminal |
|---|---|

```sh
a command that is longer than the terminal
- and no item
```

    code by its indent, longer than the terminal
";
        assert_eq!(reflow(PAGE, 20), expected);
        assert_eq!(reflow(expected, 20), expected);
        assert!(
            reflow(PAGE, 1_000)
                .contains("\nA paragraph of two lines.\n- an item that goes on in a second line\n")
        );
    }
}
