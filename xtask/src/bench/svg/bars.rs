//! Bars from left to right, in groups, each with its name before it and its value after it.

use super::super::numbers;
use super::scale::Scale;
use super::{Anchor, Canvas, DARK, MUTED, WIDTH, colour};

const LEFT: f64 = 150.0;
const RIGHT: f64 = WIDTH - 90.0;
const TOP: f64 = 40.0;
/// From one bar to the next.
const STEP: f64 = 22.0;
const THICKNESS: f64 = 15.0;
const HEADING: f64 = 30.0;
/// Below the bars: numbers and the label of the axis.
const AXIS: f64 = 52.0;

/// If the largest value is more than this many times the least, the axis is logarithmic.
const LINEAR_SPREAD: f64 = 10.0;

/// Groups of bars with one axis.
#[derive(Debug)]
pub(crate) struct BarPlot {
    pub(crate) title: String,
    /// What the axis shows.
    pub(crate) axis: String,
    pub(crate) groups: Vec<Group>,
    /// How values are written.
    pub(crate) format: fn(f64) -> String,
}

/// Bars that are compared with each other.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) heading: String,
    /// Names and values. A bar whose value is not positive has hardly any length.
    pub(crate) bars: Vec<(String, f64)>,
}

impl BarPlot {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        let scale = self.scale();
        let mut canvas = Canvas::new(&self.title);
        let bottom = TOP + self.groups.iter().map(Group::height).sum::<f64>();
        for tick in scale.ticks() {
            let x = along(scale, tick);
            canvas.line((x, TOP), (x, bottom));
            canvas.text(x, bottom + 16.0, Anchor::Middle, MUTED, &numbers::tick(tick));
        }
        let axis = if scale.is_logarithmic() { format!("{}; logarithmic", self.axis) } else { self.axis.clone() };
        canvas.text(f64::midpoint(LEFT, RIGHT), bottom + 36.0, Anchor::Middle, MUTED, &axis);
        let mut y = TOP;
        for group in &self.groups {
            canvas.heading(16.0, y + 21.0, &group.heading);
            y += HEADING;
            for (name, value) in &group.bars {
                let end = along(scale, *value);
                let baseline = y + THICKNESS - 3.0;
                canvas.text(LEFT - 8.0, baseline, Anchor::End, DARK, name);
                canvas.bar((LEFT, y), ((end - LEFT).max(1.0), THICKNESS), colour(name));
                canvas.text(end + 6.0, baseline, Anchor::Start, DARK, &(self.format)(*value));
                y += STEP;
            }
        }
        canvas.finish(bottom + AXIS)
    }

    fn scale(&self) -> Scale {
        let values = || self.groups.iter().flat_map(|group| &group.bars).map(|(_, value)| *value);
        let positive = || values().filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        if most > least * LINEAR_SPREAD {
            // The shortest bar has to be seen.
            Scale::logarithmic(least / 2.0, most)
        } else {
            Scale::linear(positive())
        }
    }
}

impl Group {
    fn height(&self) -> f64 {
        HEADING + self.bars.iter().map(|_| STEP).sum::<f64>()
    }
}

fn along(scale: Scale, value: f64) -> f64 {
    let value = if value.is_finite() { value } else { 0.0 };
    LEFT + (RIGHT - LEFT) * scale.position(value)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_well_formed;
    use super::*;

    fn plot(values: &[f64]) -> BarPlot {
        let names = ["steadfast", "rmcp pipes", "bare tokio", "a < b"];
        let bars = names.into_iter().zip(values).map(|(name, value)| (name.to_owned(), *value)).collect();
        let groups = vec![Group { heading: "add & serial".to_owned(), bars }];
        let axis = "times bare tokio".to_owned();
        BarPlot { title: "CPU time of a request".to_owned(), axis, groups, format: numbers::significant }
    }

    #[test]
    fn every_label_and_value_is_in_the_plot() {
        let svg = plot(&[1.3, 2.6, 1.0, 4.0]).svg();
        assert_well_formed(&svg);
        for text in ["CPU time of a request", "times bare tokio", "add &amp; serial", "steadfast", "rmcp pipes"] {
            assert!(svg.contains(text), "{text}");
        }
        for text in ["bare tokio", "a &lt; b", ">1.30<", ">2.60<", ">1.00<", ">4.00<"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn the_axis_is_logarithmic_if_the_spread_is_wide() {
        assert!(!plot(&[1.0, 10.0]).svg().contains("logarithmic"));
        assert!(plot(&[1.0, 10.1]).svg().contains("times bare tokio; logarithmic"));
    }

    #[test]
    fn a_plot_of_nothing_or_of_zeros_is_well_formed() {
        assert_well_formed(&plot(&[]).svg());
        assert_well_formed(&plot(&[0.0, 0.0]).svg());
        assert_well_formed(&plot(&[0.0, 1.0, 100.0]).svg());
    }
}
