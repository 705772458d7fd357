//! The sections of the document: one for each part and run, with tables for all contestants and a plot.
//!
//! A section shows what was measured. It never judges: that is what the marks do.

mod counts;
mod rates;
mod start;

use std::fmt::Write;

use super::markdown::Table;
use super::measurements::Measurements;
use super::svg::bars::BarPlot;

/// A part of the document under a heading of its own.
#[derive(Debug)]
pub(crate) struct Section {
    title: String,
    introduction: String,
    tables: Vec<(String, Table)>,
    plot: BarPlot,
    /// The name of the plot's file, without a folder.
    file: String,
}

impl Section {
    /// As it stands in the document, beside the folder of the plots.
    pub(crate) fn with_plot(&self) -> String {
        let image = format!("![{}](performance/{})\n\n", self.plot.title, self.file);
        format!("## {}\n\n{}\n\n{image}{}", self.title, self.introduction, self.tables())
    }

    /// As it is printed.
    pub(crate) fn without_plot(&self) -> String {
        format!("## {}\n\n{}\n\n{}", self.title, self.introduction, self.tables())
    }

    /// The plot's file name and content.
    pub(crate) fn plot(&self) -> (&str, String) {
        (&self.file, self.plot.svg())
    }

    fn tables(&self) -> String {
        let mut text = String::new();
        for (caption, table) in &self.tables {
            // Writing to a string does not fail.
            let _ = write!(text, "{caption}\n\n{table}\n");
        }
        text
    }
}

/// The sections of all parts that ran.
pub(crate) fn of(measurements: &Measurements) -> Vec<Section> {
    let mut sections = Vec::new();
    sections.extend(measurements.stdio.iter().flatten().map(rates::stdio));
    sections.extend(measurements.http.iter().map(rates::http));
    sections.extend(measurements.client.iter().map(|loads| rates::client(loads)));
    sections.extend(measurements.counts.iter().map(counts::section));
    sections.extend(measurements.start.iter().map(|starts| start::section(starts)));
    sections
}
