//! How far a call is: a bar at a terminal, lines elsewhere. Both on standard error.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use steadfast::ProgressParams;

use super::harmless;
use crate::output::say;

/// The bar, and whether it may be seen. A process has one terminal.
static SHOWN: Mutex<Shown> = Mutex::new(Shown { bar: None, begun: false, asked: 0 });

struct Shown {
    bar: Option<ProgressBar>,
    /// Something was reported: until then there is nothing to see.
    begun: bool,
    /// How many questions have the terminal.
    asked: usize,
}

impl Shown {
    fn lock() -> MutexGuard<'static, Self> {
        SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the bar be seen, if there is something to see and room for it.
    fn reveal(&self) {
        if let (Some(bar), true, 0) = (&self.bar, self.begun, self.asked) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// A call's progress.
#[derive(Clone)]
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(super) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::hidden());
        *Shown::lock() = Shown { bar: Some(bar.clone()), begun: false, asked: 0 };
        Self(Some(bar))
    }

    pub(super) fn show(&self, progress: &ProgressParams) {
        let part = progress.total.filter(|total| *total > 0.0).map(|total| (progress.progress / total).clamp(0.0, 1.0));
        let message = harmless::line(progress.message.as_deref().unwrap_or_default());
        let Some(bar) = &self.0 else {
            match part {
                Some(part) => say(format_args!("steadfast: {:.0}% {message}", part * 100.0)),
                None => say(format_args!("steadfast: {} {message}", progress.progress)),
            }
            return;
        };
        let mut shown = Shown::lock();
        if !shown.begun {
            shown.begun = true;
            shown.reveal();
        }
        drop(shown);
        // How far it is can be drawn only if it is known how far it goes.
        let template = if part.is_some() { "{bar:30} {percent:>3}% {wide_msg}" } else { "{spinner} {wide_msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        match part {
            Some(part) => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1,000")]
                bar.set_position((part * 1_000.0) as u64);
                bar.set_message(message);
            }
            None => bar.set_message(format!("{} {message}", progress.progress)),
        }
    }

    pub(super) fn clear(&self) {
        Shown::lock().bar = None;
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Says something on standard error, in a line above the bar if one is shown.
pub(super) fn say_above(words: impl fmt::Display) {
    let bar = Shown::lock().bar.clone();
    match bar {
        Some(bar) => bar.suspend(|| say(words)),
        None => say(words),
    }
}

/// Takes the bar away until the returned value is dropped.
pub(super) fn hide() -> Hidden {
    let mut shown = Shown::lock();
    shown.asked += 1;
    if let (Some(bar), true) = (&shown.bar, shown.begun) {
        // It is drawn when something happens to it; from here on nothing of that is seen. What is there is wiped first.
        bar.suspend(|| {});
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    Hidden
}

/// No bar is shown as long as this lives.
pub(super) struct Hidden;

impl Drop for Hidden {
    fn drop(&mut self) {
        let mut shown = Shown::lock();
        shown.asked = shown.asked.saturating_sub(1);
        shown.reveal();
    }
}
