//! `performance.md` and its plots, rendered from a `performance.json`.
//!
//! The same file gives the same text, whenever and wherever it is rendered: nothing here measures, or looks at the
//! machine.

use std::path::Path;

use super::marks::{self, Mark};
use super::measurements::Measurements;
use super::sections::{self, Section};
use crate::failure::{Context, Outcome};

/// Renders the file into `performance.md` and `performance/*.svg` of the folder. Returns the marks that it shows.
pub(crate) fn write(file: &Path, folder: &Path) -> Outcome<Vec<Mark>> {
    let text = std::fs::read_to_string(file).context(|| format!("reading {}", file.display()))?;
    let measurements: Measurements = serde_json::from_str(&text).context(|| format!("reading {}", file.display()))?;
    measurements.require_all_parts()?;
    let (sections, marks) = (sections::of(&measurements), marks::of(&measurements));
    super::write(&folder.join("performance.md"), &render(&measurements, &sections, &marks))?;
    for section in &sections {
        let (name, plot) = section.plot();
        super::write(&folder.join("performance").join(name), &plot)?;
    }
    Ok(marks)
}

fn render(measurements: &Measurements, sections: &[Section], marks: &[Mark]) -> String {
    let smoke = if measurements.smoke { "**A smoke run: far too short to conclude anything from.**\n\n" } else { "" };
    let sections: Vec<String> = sections.iter().map(Section::with_plot).collect();
    format!(
        "# Performance\n\n\
         What a request costs servers and clients on Steadfast, beside rmcp, beside the SDKs for Python and \
         TypeScript, and beside bare servers that do almost nothing, which are the limit. This document is \
         generated: do not edit it. It was made by\n\n\
         ```sh\n{}\n```\n\n\
         {smoke}{}\n\
         ## The marks\n\n\
         What Steadfast wants to reach. {}\n\n\
         {}\n{}{}",
        measurements.command,
        measurements.machine.table(Some(measurements.rounds)),
        marks::summary(marks),
        marks::table(marks),
        sections.concat(),
        include_str!("sections/how_to_read.md"),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use serde::de::DeserializeOwned;

    use super::super::bench_json::{ClientRates, HttpCounts, HttpRates, StdioCounts, StdioRates, StdioStart};
    use super::super::json_lines;
    use super::super::machine::Machine;
    use super::super::measurements::Counts;
    use super::super::svg::tests::assert_well_formed;
    use super::*;

    fn read<T: DeserializeOwned>(text: &str) -> T {
        serde_json::from_str(text).unwrap()
    }

    /// A small run, from JSON in the form that the benches write.
    pub(crate) fn measured() -> Measurements {
        let handshake = include_str!("fixtures/stdio.json");
        let stateless = handshake.replace("2025-11-25", "2026-07-28");
        Measurements {
            command: "cargo xtask bench".to_owned(),
            smoke: false,
            rounds: 3,
            machine: Machine {
                cores: 2,
                cpu: "Some CPU".to_owned(),
                kernel: "6.1.0".to_owned(),
                rustc: "rustc 1.90.0".to_owned(),
                commit: "0123456789ab".to_owned(),
                versions: [("rmcp".to_owned(), "3.8.0".to_owned())].into(),
            },
            stdio: Some(vec![read::<StdioRates>(handshake).into(), read::<StdioRates>(&stateless).into()]),
            http: Some(read::<HttpRates>(include_str!("fixtures/http.json")).into()),
            client: Some(read::<ClientRates>(include_str!("fixtures/client.json")).into()),
            counts: Some(Counts {
                stdio: read::<StdioCounts>(include_str!("fixtures/stdio-counts.json")).into(),
                http: read::<HttpCounts>(include_str!("fixtures/http-counts.json")).into(),
            }),
            start: Some(read::<StdioStart>(include_str!("fixtures/stdio-start.json")).servers),
        }
    }

    fn rendered(measurements: &Measurements) -> String {
        render(measurements, &sections::of(measurements), &marks::of(measurements))
    }

    /// As it is after it was written to a file and read again.
    fn stored(measurements: &Measurements) -> Measurements {
        read(&json_lines::text(&serde_json::to_value(measurements).unwrap()))
    }

    #[test]
    fn the_same_figures_give_the_same_text() {
        let document = rendered(&measured());
        assert_eq!(document, rendered(&measured()));
        assert_eq!(document, rendered(&stored(&measured())));
        let plots = |measurements: &Measurements| -> Vec<String> {
            sections::of(measurements).iter().map(|section| section.plot().1).collect()
        };
        assert_eq!(plots(&measured()), plots(&stored(&measured())));
    }

    #[test]
    fn the_document_has_the_command_the_facts_and_every_section() {
        let document = rendered(&measured());
        for text in [
            "cargo xtask bench\n",
            "| CPU | Some CPU |",
            "| rmcp | 3.8.0 |",
            "| rounds | 3 |",
            "41 marks are met",
            "## Servers on stdio, revision 2025-11-25",
            "](performance/stdio-2026-07-28.svg)",
            "| steadfast | 1.30 (1.25–1.35) |",
            "**session add, 1 connection**, as ratios to the form of rmcp",
            "| rmcp | 79,000 |",
            "**http 2026-07-28 pipelined**",
            "**stdio: add serial**",
            "| steadfast | 17,001 | 12 | 2,100 |",
            "## How to read it",
        ] {
            assert!(document.contains(text), "{text} is not in\n{document}");
        }
        assert!(!document.contains("NaN") && !document.contains("inf "), "{document}");
    }

    #[test]
    fn a_smoke_run_says_that_it_is_one() {
        assert!(!rendered(&measured()).contains("smoke run"));
        assert!(rendered(&Measurements { smoke: true, ..measured() }).contains("smoke run"));
    }

    #[test]
    fn every_plot_is_well_formed_and_names_every_contestant() {
        let sections = sections::of(&measured());
        let names = ["steadfast", "rmcp pipes", "rmcp stdio", "bare tokio", "bare", "python", "typescript"];
        assert_eq!(sections.len(), 6);
        for section in &sections {
            assert_well_formed(&section.plot().1);
        }
        let (file, stdio) = sections[0].plot();
        assert_eq!(file, "stdio-2025-11-25.svg");
        for name in names {
            assert!(stdio.contains(&format!(">{name}</text>")), "{name}");
        }
    }

    #[test]
    fn a_run_without_a_part_gives_no_document() {
        assert!(measured().require_all_parts().is_ok());
        assert!(Measurements { client: None, ..measured() }.require_all_parts().is_err());
    }

    #[test]
    fn the_document_and_its_plots_are_written_beside_each_other() {
        let folder = std::env::temp_dir().join(format!("xtask-document-{}", std::process::id()));
        let file = folder.join("performance.json");
        super::super::write(&file, &serde_json::to_string(&measured()).unwrap()).unwrap();
        let marks = write(&file, &folder).unwrap();
        assert!(!marks.is_empty() && folder.join("performance.md").exists());
        assert!(
            folder.join("performance/stdio-2025-11-25.svg").exists() && folder.join("performance/start.svg").exists()
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
