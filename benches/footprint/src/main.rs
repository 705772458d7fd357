//! What a minimal server costs to have: crates, bytes, and CPU seconds of a clean build, ours beside rmcp's in one run.
//!
//! Each program is built in a folder of its own that is empty before, so that nothing is there already. It never judges a figure:
//! sizes and crates are the same in every run, seconds are those of this machine and this moment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{fs, io};

use clap::Parser;
use nix::sys::resource::{UsageWho, getrusage};

/// The programs, ours before the one that it is compared with.
const PROGRAMS: [&str; 4] = ["steadfast-stdio", "rmcp-stdio", "steadfast-http", "rmcp-http"];

#[derive(Parser)]
#[command(about = "Crates, stripped size and CPU seconds of clean release builds of minimal servers")]
struct Options {
    /// Counts crates only, which takes seconds.
    #[arg(long)]
    crates: bool,
    /// Only the programs whose names contain this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Where to build. A folder for each program below it is emptied first.
    #[arg(long, default_value = "target/footprint")]
    folder: PathBuf,
}

/// What one program takes.
struct Cost {
    crates: usize,
    /// Absent if nothing was built.
    build: Option<Build>,
}

struct Build {
    bytes: u64,
    cpu_seconds: f64,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    println!("{:<16} {:>7} {:>14} {:>12}", "program", "crates", "stripped (MB)", "CPU seconds");
    for program in PROGRAMS.iter().filter(|name| name.contains(&options.filter)) {
        let crates = crates_of(program)?;
        let build = if options.crates { None } else { Some(build(program, &options.folder.join(program))?) };
        print(program, &Cost { crates, build });
    }
    Ok(())
}

fn print(program: &str, cost: &Cost) {
    let (size, seconds) = match &cost.build {
        Some(build) => (format!("{:.2}", build.bytes as f64 / 1e6), format!("{:.0}", build.cpu_seconds)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    println!("{program:<16} {:>7} {size:>14} {seconds:>12}", cost.crates);
}

/// How many crates are compiled for a program on this system, itself and build scripts' among them.
fn crates_of(program: &str) -> io::Result<usize> {
    let tree = cargo(&["tree", "--package", program, "--edges", "normal,build", "--prefix", "none"])
        .stderr(Stdio::inherit())
        .output()?;
    if !tree.status.success() {
        return Err(io::Error::other(format!("cargo tree of {program} failed")));
    }
    let tree = String::from_utf8_lossy(&tree.stdout);
    // Name and version; what follows says where it is from, or that it was listed before.
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(tree.lines().filter(|line| !line.is_empty()).map(name_and_version).collect::<BTreeSet<_>>().len())
}

/// Builds a program where nothing is built yet. The profile strips it.
fn build(program: &str, folder: &Path) -> io::Result<Build> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Downloads are no part of a build.
    succeed(&mut cargo(&["fetch", "--locked"]))?;
    let before = cpu_seconds_of_children()?;
    succeed(cargo(&["build", "--release", "--locked", "--quiet", "--package", program, "--target-dir"]).arg(folder))?;
    let cpu_seconds = cpu_seconds_of_children()? - before;
    let bytes = fs::metadata(folder.join("release").join(program))?.len();
    Ok(Build { bytes, cpu_seconds })
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let status = command.stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?} failed"))) }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Flags and wrappers of the one who runs this are no part of what a user has.
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("RUSTFLAGS").env_remove("RUSTC_WRAPPER");
    command
}

/// Of everything that was started and waited for: cargo waits for compilers, and these for the linker.
fn cpu_seconds_of_children() -> io::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
