//! Tables of two columns that fit a terminal: a name, and a description wrapped to as many lines as it needs.
//!
//! Widths are counted as terminals count them: an ideograph takes two columns, a combining mark none.

use super::terminal;

/// A row of a two-column table for the terminal. Name and description are single lines that the caller has sanitized.
pub(crate) struct TableRow {
    pub(crate) name: String,
    pub(crate) about: String,
    /// Whether the row is a detail of the row above: indented and not bold.
    pub(crate) nested: bool,
}

/// Number of spaces between the two columns of a table.
const GAP: usize = 2;
/// The minimum width of the description column of a table, even if the terminal is narrower.
const MIN_DESCRIPTION_WIDTH: usize = 20;

/// How tables are formatted for standard output.
#[derive(Clone, Copy)]
pub(crate) struct TableStyle {
    /// Width of the terminal in columns. `None` if the output is not a terminal: the lines of a table are not wrapped then.
    pub(crate) width: Option<usize>,
    /// Whether the names and headings of a table are bold.
    pub(crate) bold: bool,
}

impl TableStyle {
    /// The style of tables on standard output.
    pub(crate) fn of_stdout() -> Self {
        use std::io::IsTerminal as _;
        if !std::io::stdout().is_terminal() {
            return Self { width: None, bold: false };
        }
        let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        Self { width: width.filter(|width| *width > 0), bold: terminal::is_styled(&std::io::stdout()) }
    }

    pub(crate) fn heading(self, words: &str) -> String {
        format!("{}\n", self.emphasized(words))
    }

    /// Formats the rows.
    pub(crate) fn table(self, rows: &[TableRow]) -> String {
        // Names longer than this do not widen the first column.
        let max_name = self.width.map_or(40, |width| (width / 3).clamp(12, 40));
        let names = rows.iter().map(|row| row.indent() + columns(&row.name));
        let left = names.filter(|name| *name <= max_name).max().unwrap_or(0) + GAP;
        rows.iter().map(|row| self.row(row, left)).collect()
    }

    fn row(self, row: &TableRow, left: usize) -> String {
        let name = if row.nested { row.name.clone() } else { self.emphasized(&row.name) };
        let used = row.indent() + columns(&row.name);
        let mut text = format!("{:indent$}{name}", "", indent = row.indent());
        let lines = match self.width {
            None => vec![row.about.clone()],
            Some(width) => wrap(&row.about, width.saturating_sub(left).max(MIN_DESCRIPTION_WIDTH)),
        };
        let mut at = used;
        for (number, line) in lines.iter().filter(|line| !line.is_empty()).enumerate() {
            // Next to the name if it fits there, and below it otherwise.
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

impl TableRow {
    fn indent(&self) -> usize {
        if self.nested { 2 } else { 0 }
    }
}

/// Wraps text to lines of at most `width` columns. A word longer than `width` is broken.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = LineWrapper { width, finished: Vec::new(), current: String::new(), used: 0 };
    for word in text.split_whitespace() {
        if columns(word) <= width {
            lines.put(" ", word);
        } else {
            lines.finish_line();
            word.chars().for_each(|letter| lines.put("", letter.encode_utf8(&mut [0; 4])));
        }
    }
    lines.finished.push(lines.current);
    lines.finished
}

/// Builds lines of at most `width` columns.
struct LineWrapper {
    width: usize,
    finished: Vec<String>,
    current: String,
    /// Width in columns of the text in the current line.
    used: usize,
}

impl LineWrapper {
    /// Appends a gap and a piece of text to the current line, or starts a new line with the piece if it does not fit.
    fn put(&mut self, gap: &str, piece: &str) {
        let (gap_width, width) = (columns(gap), columns(piece));
        if self.used + gap_width + width > self.width {
            self.finish_line();
        }
        if self.used > 0 {
            self.current.push_str(gap);
            self.used += gap_width;
        }
        self.current.push_str(piece);
        self.used += width;
    }

    /// Finishes the current line unless it is empty.
    fn finish_line(&mut self) {
        if self.used > 0 {
            self.finished.push(std::mem::take(&mut self.current));
            self.used = 0;
        }
    }
}

/// The width of a text in columns of a terminal.
fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The width of a character in columns, by the common Unicode blocks; characters of other blocks count as one column.
fn columns_of(letter: char) -> usize {
    match u32::from(letter) {
        // Combining marks, joiners and variation selectors.
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
        // Ideographs, kana, hangul, full-width forms and emoji.
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

    fn row(name: &str, about: &str, nested: bool) -> TableRow {
        TableRow { name: name.to_owned(), about: about.to_owned(), nested }
    }

    fn style(width: Option<usize>) -> TableStyle {
        TableStyle { width, bold: false }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [row("add", "adds", false), row("a", "number", true), row("long_name", "x", false)];
        assert_eq!(style(None).table(&rows), "add        adds\n  a        number\nlong_name  x\n");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let about = "日本語の説明 and words of ours, some of which-are-very-long-indeed-and-have-to-be-broken 🦀";
        let rows = [row("echo", about, false), row("名前", about, true), row(&"n".repeat(35), about, false)];
        for width in 40..100 {
            let table = style(Some(width)).table(&rows);
            let longest = table.lines().map(columns).max().unwrap();
            assert!(longest <= width, "{longest} > {width}:\n{table}");
        }
    }

    #[test]
    fn a_word_longer_than_a_line_is_broken() {
        assert_eq!(wrap("one two abcdefghijkl x", 10), ["one two", "abcdefghij", "kl x"]);
        assert_eq!(wrap("日本語", 5), ["日本", "語"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn a_long_name_has_its_own_line_at_a_terminal_but_not_in_a_pipe() {
        let rows = [row("short", "one", false), row(&"n".repeat(50), "two", false)];
        assert_eq!(style(Some(60)).table(&rows), format!("short  one\n{}\n       two\n", "n".repeat(50)));
        assert_eq!(style(None).table(&rows), format!("short  one\n{}  two\n", "n".repeat(50)));
    }

    #[test]
    fn an_empty_description_leaves_no_trailing_spaces() {
        assert_eq!(style(Some(60)).table(&[row("a", "", false)]), "a\n");
        assert_eq!(style(None).table(&[row("a", "", false)]), "a\n");
    }

    #[test]
    fn the_width_of_text_is_that_of_terminals() {
        assert_eq!(columns("日本"), 4);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(columns("Ä🦀"), 3);
    }
}
