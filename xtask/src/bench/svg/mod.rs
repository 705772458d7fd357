//! Plots as SVG, written by hand.
//!
//! A plot is shown as an image on light and on dark pages, so it brings its own background and dark text, and takes no
//! colour from the page.

pub(crate) mod bars;
pub(crate) mod lines;
mod scale;

use std::fmt::{self, Write};

/// The width of every plot.
const WIDTH: f64 = 720.0;
/// The size of the text; titles are larger.
const TEXT: f64 = 12.0;
const TITLE: f64 = 15.0;
const DARK: &str = "#1f2328";
const MUTED: &str = "#59636e";
const GRID: &str = "#d1d9e0";

/// The elements of a plot, from back to front.
struct Canvas {
    title: String,
    elements: String,
}

/// Where a text begins or ends.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    fn new(title: &str) -> Self {
        let mut canvas = Self { title: title.to_owned(), elements: String::new() };
        let heading = format!("font-size=\"{TITLE}\" font-weight=\"600\" fill=\"{DARK}\"");
        canvas.push(format_args!("<text x=\"16\" y=\"26\" {heading}>{}</text>", escaped(title)));
        canvas
    }

    fn text(&mut self, x: f64, y: f64, anchor: Anchor, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
            escaped(text)
        ));
    }

    /// A text above what it names.
    fn heading(&mut self, x: f64, y: f64, text: &str) {
        let style = format!("font-weight=\"600\" fill=\"{DARK}\"");
        self.push(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escaped(text)));
    }

    /// A text that is read from bottom to top.
    fn upright_text(&mut self, x: f64, y: f64, text: &str) {
        let rotated = format!("transform=\"rotate(-90 {x:.1} {y:.1})\"");
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{MUTED}\" {rotated}>{}</text>",
            escaped(text)
        ));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let stroke = format!("stroke=\"{GRID}\" stroke-width=\"1\"");
        self.push(format_args!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {stroke}/>"));
    }

    fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
        let size = format!("width=\"{width:.1}\" height=\"{height:.1}\"");
        self.push(format_args!("<rect x=\"{x:.1}\" y=\"{y:.1}\" {size} rx=\"2\" fill=\"{colour}\"/>"));
    }

    fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let stroke = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"");
        self.push(format_args!("<polyline points=\"{}\" {stroke}/>", line.join(" ")));
        for (x, y) in points {
            self.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"));
        }
    }

    fn finish(self, height: f64) -> String {
        let font = format!("font-family=\"system-ui, sans-serif\" font-size=\"{TEXT}\"");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" role=\"img\" {font}>\n<title>{}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height:.0}\" rx=\"8\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(&self.title),
            self.elements
        )
    }

    fn push(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.elements, "{element}");
    }
}

/// The colour of a contestant, the same in all plots.
fn colour(name: &str) -> &'static str {
    match name {
        "steadfast" => "#0969da",
        "steadfast in axum" => "#54aeff",
        "rmcp stdio" | "rmcp pooled" => "#e09b13",
        "python" => "#8250df",
        "typescript" => "#1a7f37",
        "bare" => "#818b98",
        "bare tokio" => "#59636e",
        other if super::comparison::is_rmcp(other) => "#bc4c00",
        _ => "#bf3989",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
pub(crate) mod tests {
    /// Fails unless every tag is closed in order and no coordinate is missing.
    pub(crate) fn assert_well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        for tag in svg.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').unwrap_or_default();
            assert!(!text.contains('>'), "unescaped text: {text}");
            assert!(tag.matches('"').count().is_multiple_of(2), "open attribute: {tag}");
            let name = tag.split([' ', '/']).find(|word| !word.is_empty());
            if tag.starts_with('/') {
                assert_eq!(open.pop(), name, "in {svg}");
            } else if !tag.ends_with('/') {
                open.extend(name);
            }
        }
        assert!(svg.starts_with("<svg ") && open.is_empty(), "{open:?} are not closed");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn text_is_escaped() {
        let mut canvas = super::Canvas::new("a < b & \"c\"");
        canvas.text(1.0, 2.0, super::Anchor::Middle, super::DARK, "x > y");
        let svg = canvas.finish(40.0);
        assert_well_formed(&svg);
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.contains("x &gt; y"), "{svg}");
    }

    #[test]
    #[should_panic(expected = "are not closed")]
    fn an_open_tag_is_found() {
        assert_well_formed("<svg ><text>a</svg>x</text>".split("</svg>").next().unwrap_or_default());
    }
}
