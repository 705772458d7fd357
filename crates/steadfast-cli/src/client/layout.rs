//! Two columns that fit a terminal: a name, and what there is to say about it, in as many lines as that takes.
//!
//! Columns are counted as terminals count them: an ideograph takes two, a mark on a letter none.

use super::terminal;

/// One entry. Both of its texts are lines, made harmless by whoever wrote them here.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) about: String,
    /// Belongs to the entry above.
    pub(super) inner: bool,
}

/// Between the columns.
const GAP: usize = 2;
/// The second column is never narrower, even if the terminal is.
const NARROWEST: usize = 20;

/// How what is laid out is going to be shown.
#[derive(Clone, Copy)]
pub(super) struct Page {
    /// The columns of the terminal. `None` where lines are as long as they are: in a pipe.
    pub(super) width: Option<usize>,
    /// Names and headings stand out.
    pub(super) bold: bool,
}

impl Page {
    /// Standard output, as it is.
    pub(super) fn of_stdout() -> Self {
        use std::io::IsTerminal as _;
        if !std::io::stdout().is_terminal() {
            return Self { width: None, bold: false };
        }
        let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        Self { width: width.filter(|width| *width > 0), bold: terminal::is_styled(&std::io::stdout()) }
    }

    pub(super) fn heading(self, words: &str) -> String {
        format!("{}\n", self.emphasized(words))
    }

    /// The rows, one below the other.
    pub(super) fn table(self, rows: &[Row]) -> String {
        // A few long names do not push everything else to the right.
        let most = self.width.map_or(40, |width| (width / 3).clamp(12, 40));
        let names = rows.iter().map(|row| row.indent() + columns(&row.name));
        let left = names.filter(|name| *name <= most).max().unwrap_or(0) + GAP;
        rows.iter().map(|row| self.row(row, left)).collect()
    }

    fn row(self, row: &Row, left: usize) -> String {
        let name = if row.inner { row.name.clone() } else { self.emphasized(&row.name) };
        let used = row.indent() + columns(&row.name);
        let mut text = format!("{:indent$}{name}", "", indent = row.indent());
        let lines = match self.width {
            None => vec![row.about.clone()],
            Some(width) => wrapped(&row.about, width.saturating_sub(left).max(NARROWEST)),
        };
        let mut at = used;
        for (number, line) in lines.iter().filter(|line| !line.is_empty()).enumerate() {
            // Beside the name if there is room for it, and below it otherwise.
            let beside = number == 0 && (at + GAP <= left || self.width.is_none());
            if !beside {
                text.push('\n');
                at = 0;
            }
            let padding = left.saturating_sub(at).max(if beside { GAP } else { 0 });
            text.push_str(&" ".repeat(padding));
            text.push_str(line);
        }
        text.push('\n');
        text
    }

    fn emphasized(self, words: &str) -> String {
        if self.bold { format!("\u{1b}[1m{words}\u{1b}[0m") } else { words.to_owned() }
    }
}

impl Row {
    fn indent(&self) -> usize {
        if self.inner { 2 } else { 0 }
    }
}

/// The words in lines of at most so many columns. A word that is longer is broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Lines { width, full: Vec::new(), last: String::new(), used: 0 };
    for word in text.split_whitespace() {
        if columns(word) <= width {
            lines.put(" ", word);
        } else {
            lines.end_last();
            word.chars().for_each(|letter| lines.put("", letter.encode_utf8(&mut [0; 4])));
        }
    }
    lines.full.push(lines.last);
    lines.full
}

/// Lines of at most so many columns, of which the last is being written.
struct Lines {
    width: usize,
    full: Vec<String>,
    last: String,
    /// The columns of the last.
    used: usize,
}

impl Lines {
    /// Puts a piece behind what there is and a gap, or at the beginning of a line if there is no room for it.
    fn put(&mut self, gap: &str, piece: &str) {
        let (before, long) = (columns(gap), columns(piece));
        if self.used + before + long > self.width {
            self.end_last();
        }
        if self.used > 0 {
            self.last.push_str(gap);
            self.used += before;
        }
        self.last.push_str(piece);
        self.used += long;
    }

    /// The last line is full, unless there is nothing on it.
    fn end_last(&mut self) {
        if self.used > 0 {
            self.full.push(std::mem::take(&mut self.last));
            self.used = 0;
        }
    }
}

/// How many columns a terminal needs for a text.
fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// By the blocks that matter; a letter of a block that is not here is one column, as most are.
fn columns_of(letter: char) -> usize {
    match u32::from(letter) {
        // Marks that sit on the letter before them, joiners, and selectors of variants.
        0x0300..=0x036f
        | 0x0483..=0x0489
        | 0x0591..=0x05bd
        | 0x0610..=0x061a
        | 0x064b..=0x065f
        | 0x0e31
        | 0x0e34..=0x0e3a
        | 0x0e47..=0x0e4e
        | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x200b..=0x200d
        | 0x20d0..=0x20ff
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0xe_0100..=0xe_01ef => 0,
        // Ideographs, kana, hangul, forms of full width, and pictures.
        0x1100..=0x115f
        | 0x231a..=0x231b
        | 0x23e9..=0x23ec
        | 0x2614..=0x2615
        | 0x26a1
        | 0x2705
        | 0x2728
        | 0x274c
        | 0x2753..=0x2757
        | 0x2b50
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xa960..=0xa97f
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1_f300..=0x1_f64f
        | 0x1_f680..=0x1_f6ff
        | 0x1_f900..=0x1_f9ff
        | 0x1_fa70..=0x1_faff
        | 0x2_0000..=0x3_fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, about: &str, inner: bool) -> Row {
        Row { name: name.to_owned(), about: about.to_owned(), inner }
    }

    fn page(width: Option<usize>) -> Page {
        Page { width, bold: false }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [row("add", "adds", false), row("a", "number", true), row("long_name", "x", false)];
        assert_eq!(page(None).table(&rows), "add        adds\n  a        number\nlong_name  x\n");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let about = "日本語の説明 and words of ours, some of which-are-very-long-indeed-and-have-to-be-broken 🦀";
        let rows = [row("echo", about, false), row("名前", about, true), row(&"n".repeat(35), about, false)];
        for width in 40..100 {
            let table = page(Some(width)).table(&rows);
            let longest = table.lines().map(columns).max().unwrap();
            assert!(longest <= width, "{longest} > {width}:\n{table}");
        }
    }

    #[test]
    fn a_word_that_fits_no_line_is_broken_on_lines_of_its_own() {
        assert_eq!(wrapped("one two abcdefghijkl x", 10), ["one two", "abcdefghij", "kl x"]);
        assert_eq!(wrapped("日本語", 5), ["日本", "語"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_long_name_has_a_line_of_its_own_at_a_terminal_and_none_in_a_pipe() {
        let rows = [row("short", "one", false), row(&"n".repeat(50), "two", false)];
        assert_eq!(page(Some(60)).table(&rows), format!("short  one\n{}\n       two\n", "n".repeat(50)));
        assert_eq!(page(None).table(&rows), format!("short  one\n{}  two\n", "n".repeat(50)));
    }

    #[test]
    fn nothing_to_say_leaves_nothing_behind_the_name() {
        assert_eq!(page(Some(60)).table(&[row("a", "", false)]), "a\n");
        assert_eq!(page(None).table(&[row("a", "", false)]), "a\n");
    }

    #[test]
    fn text_is_as_wide_as_terminals_make_it() {
        assert_eq!(columns("日本"), 4);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(columns("Ä🦀"), 3);
    }
}
