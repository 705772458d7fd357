//! Where we stand, as text.

use std::fmt::Write as _;

use crate::manifest::{Level, Manifest, Side, Standing};

/// How many requirements of a level stand where.
#[derive(Clone, Copy, Default)]
struct Tally {
    shown: usize,
    open: usize,
    beyond: usize,
}

impl Tally {
    fn of(manifest: &Manifest, level: Level) -> Self {
        let mut tally = Self::default();
        for requirement in manifest.requirements.iter().filter(|requirement| requirement.level == level) {
            match requirement.standing() {
                Standing::Shown => tally.shown += 1,
                Standing::Open => tally.open += 1,
                Standing::Beyond => tally.beyond += 1,
                Standing::Client => (),
            }
        }
        tally
    }

    fn add(&mut self, other: Self) {
        self.shown += other.shown;
        self.open += other.open;
        self.beyond += other.beyond;
    }

    fn line(self) -> String {
        let all = self.shown + self.open + self.beyond;
        format!("{all:>7}{:>7}{:>6}{:>8}", self.shown, self.open, self.beyond)
    }
}

/// The table: page, then musts and shoulds with how many are shown, open and not ours, and how many are for clients.
pub fn table(manifests: &[Manifest]) -> String {
    let mut text = format!("{:<36}  musts  shown  open  beyond  shoulds  shown  open  beyond  client\n", "page");
    let (mut musts, mut shoulds, mut clients) = (Tally::default(), Tally::default(), 0);
    for manifest in manifests {
        let (must, should) = (Tally::of(manifest, Level::Must), Tally::of(manifest, Level::Should));
        let client = manifest.requirements.iter().filter(|requirement| requirement.side == Side::Client).count();
        let _ = writeln!(text, "{:<36}{}  {}{client:>8}", manifest.name, must.line(), should.line());
        musts.add(must);
        shoulds.add(should);
        clients += client;
    }
    let _ = writeln!(text, "{:<36}{}  {}{clients:>8}", "all", musts.line(), shoulds.line());
    text
}

/// What is open, with what is missing.
pub fn open(manifests: &[Manifest]) -> String {
    let mut text = String::new();
    for manifest in manifests {
        for requirement in &manifest.requirements {
            if let Some(missing) = &requirement.open {
                let _ = writeln!(text, "{}: {:?} {}: {missing}", manifest.name, requirement.level, requirement.id);
            }
        }
    }
    text
}
