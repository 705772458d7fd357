//! Where we stand, as text.

use std::fmt::Write as _;

use crate::manifest::{Level, Manifest, Party, Standing};

/// How many requirements of a level stand where.
#[derive(Clone, Copy, Default)]
struct Tally {
    shown: usize,
    open: usize,
    beyond: usize,
}

impl Tally {
    fn of(manifest: &Manifest, party: Party, level: Level) -> Self {
        let mut tally = Self::default();
        let of_level = manifest.requirements.iter().filter(|requirement| requirement.level == level);
        for case in of_level.filter_map(|requirement| requirement.case_of(party)) {
            match case.standing() {
                Standing::Shown => tally.shown += 1,
                Standing::Open => tally.open += 1,
                Standing::Beyond => tally.beyond += 1,
            }
        }
        tally
    }

    fn add(&mut self, other: Self) {
        self.shown += other.shown;
        self.open += other.open;
        self.beyond += other.beyond;
    }

    fn all(self) -> usize {
        self.shown + self.open + self.beyond
    }

    fn line(self) -> String {
        format!("{:>7}{:>7}{:>6}{:>8}", self.all(), self.shown, self.open, self.beyond)
    }
}

/// The tables, one for each party: page, then musts and shoulds with how many are shown, open and not ours.
pub fn tables(manifests: &[Manifest]) -> String {
    Party::ALL.map(|party| table(manifests, party)).join("\n")
}

fn table(manifests: &[Manifest], party: Party) -> String {
    let of = match party {
        Party::Server => "demanded of a server",
        Party::Client => "demanded of a client",
    };
    let mut text = format!("{of:<36}  musts  shown  open  beyond  shoulds  shown  open  beyond\n");
    let (mut musts, mut shoulds) = (Tally::default(), Tally::default());
    for manifest in manifests {
        let (must, should) = (Tally::of(manifest, party, Level::Must), Tally::of(manifest, party, Level::Should));
        if must.all() + should.all() > 0 {
            let _ = writeln!(text, "{:<36}{}  {}", manifest.name, must.line(), should.line());
        }
        musts.add(must);
        shoulds.add(should);
    }
    let _ = writeln!(text, "{:<36}{}  {}", "all", musts.line(), shoulds.line());
    text
}

/// What is open, with what is missing.
pub fn open(manifests: &[Manifest]) -> String {
    let mut text = String::new();
    for party in Party::ALL {
        for manifest in manifests {
            for requirement in &manifest.requirements {
                if let Some(missing) = requirement.case_of(party).and_then(|case| case.open) {
                    let (page, level, id) = (&manifest.name, requirement.level, &requirement.id);
                    let _ = writeln!(text, "{party:?}: {page}: {level:?} {id}: {missing}");
                }
            }
        }
    }
    text
}
