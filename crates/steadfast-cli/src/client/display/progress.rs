//! Progress of a call on standard error: a bar at a terminal, lines elsewhere.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use steadfast::model::ProgressParams;

use super::sanitize;
use crate::output::eprint_line;

/// The state of the progress bar, one per process since there is one terminal.
static BAR: Mutex<BarState> = Mutex::new(BarState { bar: None, has_progress: false, open_dialogs: 0 });

struct BarState {
    bar: Option<ProgressBar>,
    /// Whether a progress notification was received. No progress bar is shown before the first progress notification.
    has_progress: bool,
    /// The current number of dialogs that use the terminal. The progress bar is hidden while a dialog is open.
    open_dialogs: usize,
}

impl BarState {
    fn lock() -> MutexGuard<'static, Self> {
        BAR.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the progress bar if there is progress to show and no dialog is open.
    fn reveal(&self) {
        if let (Some(bar), true, 0) = (&self.bar, self.has_progress, self.open_dialogs) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// Displays the progress of a tool call.
#[derive(Clone)]
pub(crate) struct ProgressDisplay(Option<ProgressBar>);

impl ProgressDisplay {
    pub(crate) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::hidden());
        *BarState::lock() = BarState { bar: Some(bar.clone()), has_progress: false, open_dialogs: 0 };
        Self(Some(bar))
    }

    pub(crate) fn show(&self, progress: &ProgressParams) {
        let part = progress.total.filter(|total| *total > 0.0).map(|total| (progress.progress / total).clamp(0.0, 1.0));
        let message = sanitize::line(progress.message.as_deref().unwrap_or_default());
        let Some(bar) = &self.0 else {
            match part {
                Some(part) => eprint_line(format_args!("steadfast: {:.0}% {message}", part * 100.0)),
                None => eprint_line(format_args!("steadfast: {} {message}", progress.progress)),
            }
            return;
        };
        let mut state = BarState::lock();
        if !state.has_progress {
            state.has_progress = true;
            state.reveal();
        }
        drop(state);
        // A bar needs a total; without one a spinner is shown.
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

    pub(crate) fn clear(&self) {
        BarState::lock().bar = None;
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Prints a line to standard error, above the progress bar if one is shown.
pub(crate) fn eprint_above_bar(line: impl fmt::Display) {
    let bar = BarState::lock().bar.clone();
    match bar {
        Some(bar) => bar.suspend(|| eprint_line(line)),
        None => eprint_line(line),
    }
}

/// Hides the progress bar until the returned guard is dropped.
pub(crate) fn hide_bar() -> HiddenProgressBarGuard {
    let mut state = BarState::lock();
    state.open_dialogs += 1;
    if let (Some(bar), true) = (&state.bar, state.has_progress) {
        // Erases the bar, then hides all later drawing.
        bar.suspend(|| {});
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    HiddenProgressBarGuard
}

/// Hides the progress bar until this guard is dropped.
pub(crate) struct HiddenProgressBarGuard;

impl Drop for HiddenProgressBarGuard {
    fn drop(&mut self) {
        let mut state = BarState::lock();
        state.open_dialogs = state.open_dialogs.saturating_sub(1);
        state.reveal();
    }
}
