//! Medians, quartiles and slopes of a few values. It knows nothing of what they mean.

/// A figure over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Half of the values lie below it.
    pub(crate) median: f64,
    /// A quarter of the values lies below it.
    pub(crate) lower_quartile: f64,
    /// A quarter of the values lies above it.
    pub(crate) upper_quartile: f64,
}

impl Spread {
    /// The spread of the values that are numbers; none if there are none. A value between two neighbours is
    /// interpolated.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let quarter = |quarters: usize| {
            let (below, rest) = (last * quarters / 4, last * quarters % 4);
            let (low, high) = (*sorted.get(below)?, *sorted.get((below + 1).min(last))?);
            Some(low + (high - low) * [0.0, 0.25, 0.5, 0.75].get(rest)?)
        };
        Some(Self { median: quarter(2)?, lower_quartile: quarter(1)?, upper_quartile: quarter(3)? })
    }
}

/// The slope of the line that fits the points best, by least squares; none for fewer than two different abscissas.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count: f64 = points.iter().map(|_| 1.0).sum();
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let variation: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let covariation: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = covariation / variation;
    slope.is_finite().then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        let expected = Spread { median: 2.5, lower_quartile: 1.75, upper_quartile: 3.25 };
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Some(expected));
    }

    #[test]
    fn one_value_is_its_own_spread_and_none_has_none() {
        let expected = Spread { median: 7.0, lower_quartile: 7.0, upper_quartile: 7.0 };
        assert_eq!(Spread::of([7.0, f64::NAN]), Some(expected));
        assert_eq!(Spread::of([f64::INFINITY]), None);
    }

    #[test]
    fn the_slope_is_that_of_the_best_line() {
        let near = |slope: Option<f64>, expected: f64| slope.is_some_and(|slope| (slope - expected).abs() < 1e-12);
        assert!(near(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0));
        assert!(near(slope(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), 0.0));
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
