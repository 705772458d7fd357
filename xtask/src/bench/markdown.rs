//! A table in Markdown: names on the left, figures to the right.

use std::fmt;

/// A table whose first column names the rows.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<T: Into<String>>(columns: impl IntoIterator<Item = T>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells that it has too few of are empty.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |formatter: &mut fmt::Formatter<'_>, cells: &[String]| {
            let cells = (0..self.columns.len()).map(|column| cells.get(column).map_or("", String::as_str));
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
            writeln!(formatter, "| {} |", cells.join(" | "))
        };
        line(formatter, &self.columns)?;
        let rules: Vec<&str> = (0..self.columns.len()).map(|column| if column == 0 { "---" } else { "---:" }).collect();
        writeln!(formatter, "|{}|", rules.join("|"))?;
        self.rows.iter().try_for_each(|row| line(formatter, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_cell_for_each_column() {
        let mut table = Table::new(["server", "CPU time"]);
        table.push(vec!["a|b".to_owned()]);
        assert_eq!(table.to_string(), "| server | CPU time |\n|---|---:|\n| a\\|b |  |\n");
    }
}
