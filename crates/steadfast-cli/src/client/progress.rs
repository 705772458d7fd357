//! How far a call is: a bar at a terminal, lines elsewhere. Both on standard error.

use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use steadfast::ProgressParams;

use super::harmless;
use crate::output::say;

/// The bar that is shown. A process has one terminal.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call's progress.
#[derive(Clone)]
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(super) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(1_000);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}% {wide_msg}") {
            bar.set_style(style);
        }
        *shown() = Some(bar.clone());
        Self(Some(bar))
    }

    pub(super) fn show(&self, progress: &ProgressParams) {
        let part = progress.total.filter(|total| *total > 0.0).map(|total| (progress.progress / total).clamp(0.0, 1.0));
        let message = harmless::line(progress.message.as_deref().unwrap_or_default());
        match (&self.0, part) {
            (None, Some(part)) => say(format_args!("steadfast: {:.0}% {message}", part * 100.0)),
            (None, None) => say(format_args!("steadfast: {} {message}", progress.progress)),
            (Some(bar), part) => {
                if let Some(part) = part {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1,000")]
                    bar.set_position((part * 1_000.0) as u64);
                }
                bar.set_message(message);
            }
        }
    }

    pub(super) fn clear(&self) {
        *shown() = None;
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Takes the bar away until the returned value is dropped.
pub(super) fn hide() -> Hidden {
    let bar = shown().clone();
    if let Some(bar) = &bar {
        // It is drawn when something happens to it; from here on nothing of that is seen. What is there is wiped first.
        bar.suspend(|| {});
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    Hidden(bar)
}

/// No bar is shown as long as this lives.
pub(super) struct Hidden(Option<ProgressBar>);

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(bar) = self.0.as_ref().filter(|bar| !bar.is_finished()) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}
