//! From values to positions along an axis, and the round numbers that stand beside it.

/// An axis between two values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// From zero to the largest of the values.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0, f64::max);
        Self { from: 0.0, to: if most > 0.0 { most } else { 1.0 }, logarithmic: false }
    }

    /// From the least of the values to the largest; equal ratios are equally long. Both should be positive.
    pub(super) fn logarithmic(least: f64, most: f64) -> Self {
        let from = if least.is_finite() && least > 0.0 { least } else { 1.0 };
        let to = if most.is_finite() && most > from { most } else { from * 10.0 };
        Self { from, to, logarithmic: true }
    }

    pub(super) const fn is_logarithmic(self) -> bool {
        self.logarithmic
    }

    /// Where a value lies: 0 at the beginning, 1 at the end. Values outside lie at the ends.
    pub(super) fn position(self, value: f64) -> f64 {
        let value = value.clamp(self.from, self.to);
        if self.logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }

    /// Round numbers on the axis: few enough to be read.
    pub(super) fn ticks(self) -> Vec<f64> {
        if self.logarithmic { self.logarithmic_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(self) -> Vec<f64> {
        let rough = self.to / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
        let step = step.unwrap_or(self.to);
        (0_u8..=6).map(|count| f64::from(count) * step).take_while(|tick| *tick <= self.to).collect()
    }

    fn logarithmic_ticks(self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let factors: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        // Rounding must not lose a tick at an end.
        let (least, most) = (self.from * 0.999, self.to * 1.001);
        let first = self.from.log10().floor();
        let powers = (0_u8..=40).map(|decade| 10_f64.powf(first + f64::from(decade)));
        let ticks = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
        ticks.filter(|tick| (least..=most).contains(tick)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_on_the_axis() {
        assert_eq!(Scale::linear([1.2, 4.3].into_iter()).ticks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::logarithmic(1.0, 100.0).ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(Scale::logarithmic(1.0, 10_000.0).ticks(), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn positions_are_within_the_axis() {
        let scale = Scale::logarithmic(1.0, 100.0);
        for (value, expected) in [(0.1, 0.0), (1.0, 0.0), (10.0, 0.5), (100.0, 1.0), (1000.0, 1.0)] {
            assert!((scale.position(value) - expected).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn an_axis_for_nothing_is_still_an_axis() {
        for scale in [Scale::linear(std::iter::empty()), Scale::logarithmic(0.0, 0.0), Scale::logarithmic(5.0, 5.0)] {
            assert!(scale.position(1.0).is_finite() && scale.ticks().iter().all(|tick| tick.is_finite()), "{scale:?}");
        }
    }
}
