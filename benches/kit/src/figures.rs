//! Figures over rounds, and how they are written.

/// A figure over rounds.
#[derive(Clone, Copy, serde::Serialize)]
pub struct Spread {
    /// Half of the rounds lie below it.
    pub median: f64,
    /// A quarter of the rounds lies below it.
    pub lower_quartile: f64,
    /// A quarter of the rounds lies above it.
    pub upper_quartile: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        // At a fraction of the way from the first to the last, between two neighbours if need be.
        let at = |fraction: (usize, usize)| {
            let place = (values.len() - 1) * fraction.0;
            let (below, part) = (place / fraction.1, place % fraction.1);
            let above = (below + 1).min(values.len() - 1);
            values[below] + (values[above] - values[below]) * part as f64 / fraction.1 as f64
        };
        Self { median: at((1, 2)), lower_quartile: at((1, 4)), upper_quartile: at((3, 4)) }
    }
}

/// Three digits that mean something, for a ratio or a small time.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A count with its thousands apart; a fraction of one is shown below ten.
pub fn grouped(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digit.is_ascii_digit() && (digits.len() - place).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_stand_apart() {
        let shown: Vec<String> = [1.25, 999.0, 1_234_567.0, -12_345.0].map(grouped).into();
        assert_eq!(shown, ["1.2", "999", "1,234,567", "-12,345"]);
    }
}
