//! How figures are written in tables and plots.

use super::statistics::Spread;

/// What stands where there is no figure.
pub(crate) const NONE: &str = "-";

/// Three digits that mean something, for a ratio.
pub(crate) fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A count with its thousands apart; a fraction of one is shown below ten.
pub(crate) fn grouped(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        let left = digits.len() - position;
        if left.is_multiple_of(3) && text.ends_with(|last: char| last.is_ascii_digit()) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A part of a whole.
pub(crate) fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// A round number beside an axis.
pub(crate) fn tick(value: f64) -> String {
    if value.abs() >= 10.0 {
        return grouped(value);
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A figure if there is one.
pub(crate) fn shown(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), format)
}

/// A ratio with its quartiles after it. The ratio of a reference to itself has none.
pub(crate) fn with_quartiles(ratio: Option<Spread>) -> String {
    const ITSELF: Spread = Spread { median: 1.0, lower_quartile: 1.0, upper_quartile: 1.0 };
    match ratio {
        None => NONE.to_owned(),
        Some(ITSELF) => "1".to_owned(),
        Some(Spread { median, lower_quartile, upper_quartile }) => {
            format!("{} ({}–{})", significant(median), significant(lower_quartile), significant(upper_quartile))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let shown: Vec<String> = [1.25, 999.0, 1_234_567.0, -12_345.0, -123.0].map(grouped).into();
        assert_eq!(shown, ["1.2", "999", "1,234,567", "-12,345", "-123"]);
    }

    #[test]
    fn ticks_have_no_trailing_zeros() {
        let shown: Vec<String> = [0.0, 0.005, 0.5, 2.0, 10.0, 1000.0].map(tick).into();
        assert_eq!(shown, ["0", "0.005", "0.5", "2", "10", "1,000"]);
    }

    #[test]
    fn quartiles_follow_the_median() {
        let spread = Spread { median: 1.3, lower_quartile: 1.25, upper_quartile: 12.34 };
        assert_eq!(with_quartiles(Some(spread)), "1.30 (1.25–12.3)");
        assert_eq!(with_quartiles(None), "-");
    }
}
