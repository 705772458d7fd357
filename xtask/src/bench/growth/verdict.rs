//! How fast a cost grows: the exponent of a power of the size, and what it is called.

use super::super::statistics::slope;

/// Up to this exponent a cost is called constant: the rest is noise, and caches that no longer hold everything.
const CONSTANT: f64 = 0.15;
/// Up to this exponent the total grows like n log n.
const LOGARITHMIC: f64 = 0.35;
/// The sizes that count are those within two decades of the largest.
const DECADES: f64 = 100.0;

/// How the cost of one unit grows with the number of units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    /// The exponent of the size in the cost of a unit; none for too few points.
    exponent: Option<f64>,
}

impl Growth {
    /// From sizes and costs: a least-squares fit of the logarithms over the last two decades of sizes.
    pub(crate) fn of(points: &[(f64, f64)]) -> Self {
        let most = points.iter().map(|(n, _)| *n).fold(0.0, f64::max);
        let counts = |(n, cost): &&(f64, f64)| *n > 0.0 && *cost > 0.0 && *n >= most / DECADES * 0.999;
        let logarithms: Vec<(f64, f64)> = points.iter().filter(counts).map(|(n, cost)| (n.ln(), cost.ln())).collect();
        Self { exponent: slope(&logarithms) }
    }

    pub(crate) const fn exponent(self) -> Option<f64> {
        self.exponent
    }

    pub(crate) fn name(self) -> &'static str {
        match self.exponent {
            None => "too few points",
            Some(exponent) if exponent <= CONSTANT => "constant",
            Some(exponent) if exponent <= LOGARITHMIC => "n log n",
            Some(_) => "worse",
        }
    }

    /// Whether a cost may grow like this. One that cannot be judged may not: a check would be lost without a word.
    pub(crate) fn is_acceptable(self) -> bool {
        self.exponent.is_some_and(|exponent| exponent <= LOGARITHMIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(cost: impl Fn(f64) -> f64) -> Growth {
        Growth::of(&[1.0, 10.0, 100.0, 1000.0, 10_000.0].map(|n| (n, cost(n))))
    }

    #[test]
    fn the_exponent_of_a_power_is_found() {
        for exponent in [-0.5, 0.0, 0.25, 1.0] {
            let found = growth(|n| 3.0 * n.powf(exponent)).exponent();
            assert!(found.is_some_and(|found| (found - exponent).abs() < 1e-9), "{exponent}: {found:?}");
        }
    }

    #[test]
    fn only_the_last_two_decades_count() {
        let found = growth(|n| if n < 100.0 { 1000.0 / n } else { 10.0 });
        assert_eq!((found.name(), found.is_acceptable()), ("constant", true));
    }

    #[test]
    fn growth_is_named_by_its_exponent() {
        let names = [0.0, 0.14, 0.16, 0.34, 0.36, 1.0].map(|exponent| growth(|n| n.powf(exponent)).name());
        assert_eq!(names, ["constant", "constant", "n log n", "n log n", "worse", "worse"]);
        assert!(!growth(|n| n).is_acceptable());
    }

    #[test]
    fn one_point_has_no_growth() {
        let found = Growth::of(&[(1.0, 5.0)]);
        assert_eq!((found.exponent(), found.name(), found.is_acceptable()), (None, "too few points", false));
    }
}
