//! How long a figure is measured, and how it comes about.

use bench_kit::figures::Spread;
use bench_kit::process::Subject;
use std::io;
use std::time::Duration;

/// How many slices a figure is the median of.
const SLICES: usize = 3;

/// The bounds of a measurement.
pub(crate) struct Effort {
    /// How long a server may take for one n, once it runs.
    pub(crate) budget: Duration,
    /// A slice ends once the server took that much CPU time,
    cpu: Duration,
    /// or once that many calls were made.
    calls: u32,
}

impl Effort {
    pub(crate) const fn new(smoke: bool) -> Self {
        if smoke {
            Self { budget: Duration::from_secs(5), cpu: Duration::from_millis(20), calls: 100 }
        } else {
            Self { budget: Duration::from_secs(20), cpu: Duration::from_millis(200), calls: 2_000 }
        }
    }

    /// CPU microseconds of the server for one call. The first slice is shorter, and is not counted: caches fill, and
    /// buffers grow.
    pub(crate) fn cpu_per_call(&self, server: &Subject, mut call: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
        slice(server, self.cpu / 4, self.calls / 4, &mut call)?;
        let slices = (0..SLICES).map(|_| slice(server, self.cpu, self.calls, &mut call));
        Ok(Spread::of(slices.collect::<io::Result<_>>()?).median)
    }
}

fn slice(
    server: &Subject,
    most_cpu: Duration,
    most_calls: u32,
    call: &mut impl FnMut() -> io::Result<()>,
) -> io::Result<f64> {
    let began = server.cpu_time()?;
    let mut calls = 0;
    loop {
        call()?;
        calls += 1;
        let cpu = server.cpu_time()?.saturating_sub(began);
        if cpu >= most_cpu || calls >= most_calls {
            return Ok(1e6 * cpu.as_secs_f64() / f64::from(calls));
        }
    }
}
