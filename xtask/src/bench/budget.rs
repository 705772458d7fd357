//! `benches/budget.json`: how many instructions and allocations a request may take.
//!
//! Counts hardly depend on the load of the machine, so that CI can compare them; they do depend on the compiler, so
//! that a budget is only compared with counts of the same version of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::markdown::Table;
use super::measurements::CountedLoad;
use super::numbers::{NONE, grouped, shown};
use crate::failure::{Context, Outcome};
use crate::paths;

/// How far a figure may lie from its budget, as a part of it.
const TOLERANCE: f64 = 0.05;
/// How far a figure may lie from its budget in any case: less than this is noise, and a budget may be zero.
const NOISE: f64 = 0.05;

/// Figures by name, for each request.
pub(crate) type Figures = BTreeMap<String, f64>;

/// What is in the file.
#[derive(Debug, Deserialize)]
pub(crate) struct Budget {
    /// The compiler that the figures were counted with.
    pub(crate) rustc: String,
    pub(crate) figures: Figures,
}

impl Budget {
    /// Where the budget is.
    pub(crate) fn file() -> PathBuf {
        paths::root().join("benches/budget.json")
    }

    pub(crate) fn read(file: &Path) -> Outcome<Self> {
        let hint = || format!("reading {} (`cargo xtask bench --quick --update` writes it)", file.display());
        let text = std::fs::read_to_string(file).context(hint)?;
        serde_json::from_str(&text).context(hint)
    }

    /// The text of the file, with the figures sorted by name.
    pub(crate) fn text(&self) -> Outcome<String> {
        // Whole numbers are written without a fraction.
        let number = |figure: &f64| serde_json::from_str::<Value>(&figure.to_string());
        let figures: Result<Map<String, Value>, _> =
            self.figures.iter().map(|(name, figure)| Ok((name.clone(), number(figure)?))).collect();
        let figures = figures.and_then(|figures| serde_json::to_string_pretty(&figures));
        let figures = figures.context(|| "writing the budget as JSON".to_owned())?.replace('\n', "\n  ");
        Ok(format!("{{\n  \"rustc\": {},\n  \"figures\": {figures}\n}}\n", Value::from(self.rustc.as_str())))
    }

    /// Why figures that were counted with this compiler cannot be compared with the budget, if they cannot.
    pub(crate) fn other_compiler(&self, rustc: &str) -> Option<String> {
        (self.rustc != rustc).then(|| {
            format!(
                "The budget was counted with {}, and this is {rustc}: the counts are not compared. \
                 `cargo xtask bench --quick --update` counts anew.",
                self.rustc
            )
        })
    }

    /// Each figure beside its budget, sorted by name.
    pub(crate) fn compare(&self, counted: &Figures) -> Vec<Comparison> {
        let mut names: Vec<&String> = self.figures.keys().chain(counted.keys()).collect();
        names.sort();
        names.dedup();
        let one = |name: &String| Comparison {
            name: name.clone(),
            budget: self.figures.get(name).copied(),
            counted: counted.get(name).copied(),
        };
        names.into_iter().map(one).collect()
    }
}

/// A figure beside its budget.
#[derive(Debug)]
pub(crate) struct Comparison {
    name: String,
    budget: Option<f64>,
    counted: Option<f64>,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Near the budget.
    Kept,
    /// Too far over the budget: a failure.
    Over,
    /// So far below that the budget can be lowered.
    Below,
    /// Counted, and not in the budget yet.
    New,
    /// In the budget, and not counted: a failure, since a check would be lost without a word.
    Missing,
}

impl Comparison {
    pub(crate) fn verdict(&self) -> Verdict {
        let (Some(budget), Some(counted)) = (self.budget, self.counted) else {
            return if self.counted.is_none() { Verdict::Missing } else { Verdict::New };
        };
        let slack = (budget * TOLERANCE).max(NOISE);
        if counted > budget + slack {
            Verdict::Over
        } else if counted < budget - slack {
            Verdict::Below
        } else {
            Verdict::Kept
        }
    }

    /// Whether the check fails because of it.
    pub(crate) fn fails(&self) -> bool {
        matches!(self.verdict(), Verdict::Over | Verdict::Missing)
    }

    /// How far the figure lies over its budget, in percent.
    fn difference(&self) -> Option<f64> {
        let (budget, counted) = (self.budget?, self.counted?);
        if counted.total_cmp(&budget).is_eq() { Some(0.0) } else { Some(100.0 * (counted - budget) / budget) }
    }
}

/// All comparisons as a table.
pub(crate) fn table(comparisons: &[Comparison]) -> Table {
    let mut table = Table::new(["figure", "budget", "counted", "difference", "verdict"]);
    for comparison in comparisons {
        let difference = match comparison.difference() {
            None => NONE.to_owned(),
            Some(percent) if percent.is_finite() => format!("{percent:+.1} %"),
            Some(_) => "budget is 0".to_owned(),
        };
        let verdict = match comparison.verdict() {
            Verdict::Kept => "kept",
            Verdict::Over => "OVER",
            Verdict::Below => "below: lower the budget with --update",
            Verdict::New => "not in the budget: add it with --update",
            Verdict::Missing => "NOT COUNTED",
        };
        let (budget, counted) = (shown(comparison.budget, exact), shown(comparison.counted, exact));
        table.push(vec![comparison.name.clone(), budget, counted, difference, verdict.to_owned()]);
    }
    table
}

/// With the fraction that the file has.
fn exact(figure: f64) -> String {
    if figure < 1000.0 { figure.to_string() } else { grouped(figure) }
}

/// The figures of steadfast in these loads. `transport` begins their names.
pub(crate) fn figures(transport: &str, loads: &[CountedLoad]) -> Figures {
    let mut figures = Figures::new();
    for load in loads {
        for one in load.contestants.iter().filter(|one| one.name == "steadfast") {
            let name = |figure: &str| format!("{transport} {} {figure}", load.load);
            figures.insert(name("instructions"), one.per_request.instructions.round());
            figures.insert(name("allocations"), (100.0 * one.per_request.allocations).round() / 100.0);
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::bench_json::StdioCounts;
    use super::*;

    fn figures_of<const N: usize>(figures: [(&str, f64); N]) -> Figures {
        figures.map(|(name, figure)| (name.to_owned(), figure)).into()
    }

    fn budget() -> Budget {
        let figures = figures_of([("add instructions", 1000.0), ("add allocations", 10.0), ("echo allocations", 0.0)]);
        Budget { rustc: "rustc 1.90.0".to_owned(), figures }
    }

    fn verdicts(counted: [(&str, f64); 3]) -> Vec<Verdict> {
        budget().compare(&figures_of(counted)).iter().map(Comparison::verdict).collect()
    }

    #[test]
    fn a_figure_may_lie_five_percent_beside_its_budget() {
        let counted = [("add allocations", 10.4), ("add instructions", 1050.0), ("echo allocations", 0.01)];
        assert_eq!(verdicts(counted), [Verdict::Kept; 3]);
    }

    #[test]
    fn a_figure_over_its_budget_fails_and_one_below_is_only_noted() {
        let counted = [("add allocations", 9.0), ("add instructions", 1051.0), ("echo allocations", 1.0)];
        assert_eq!(verdicts(counted), [Verdict::Below, Verdict::Over, Verdict::Over]);
        let comparisons = budget().compare(&figures_of(counted));
        assert_eq!(comparisons.iter().map(Comparison::fails).collect::<Vec<_>>(), [false, true, true]);
        let table = table(&comparisons).to_string();
        assert!(table.contains("| add instructions | 1,000 | 1,051 | +5.1 % | OVER |"), "{table}");
        assert!(table.contains("| add allocations | 10 | 9 | -10.0 % | below: "), "{table}");
        assert!(!table.contains("inf") && !table.contains("NaN"), "{table}");
    }

    #[test]
    fn a_budget_that_was_not_counted_fails_and_a_new_figure_does_not() {
        let comparisons = budget().compare(&figures_of([("blob instructions", 5.0)]));
        let found: Vec<(Verdict, bool)> = comparisons.iter().map(|one| (one.verdict(), one.fails())).collect();
        let missing = (Verdict::Missing, true);
        assert_eq!(found, [missing, missing, (Verdict::New, false), missing]);
    }

    #[test]
    fn counts_of_another_compiler_are_not_compared() {
        assert_eq!(budget().other_compiler("rustc 1.90.0"), None);
        let sentence = budget().other_compiler("rustc 1.91.0").unwrap_or_default();
        assert!(sentence.contains("rustc 1.90.0") && sentence.contains("rustc 1.91.0"), "{sentence}");
    }

    #[test]
    fn the_figures_are_those_of_steadfast() {
        let counts: Option<StdioCounts> = serde_json::from_str(include_str!("fixtures/stdio-counts.json")).ok();
        let loads: Vec<CountedLoad> = counts.map(Into::into).unwrap_or_default();
        let figures = figures("stdio", &loads);
        assert_eq!(figures.get("stdio add serial instructions"), Some(&17_001.0));
        assert_eq!(figures.get("stdio add serial allocations"), Some(&12.03));
        assert_eq!(figures.len(), 2 * loads.len());
    }

    #[test]
    fn the_file_is_sorted_and_read_again() {
        let text = budget().text().unwrap_or_default();
        assert!(text.find("add allocations") < text.find("add instructions"), "{text}");
        assert!(text.contains("\"add instructions\": 1000,"), "{text}");
        assert!(serde_json::from_str::<Budget>(&text).is_ok_and(|read| read.figures == budget().figures));
    }
}
