//! Where we stand, as text.

use std::fmt::Write as _;

use crate::manifest::{Level, Manifest, Role, Status};

/// How many requirements of a level stand where.
#[derive(Clone, Copy, Default)]
struct Tally {
    shown: usize,
    open: usize,
    not_applicable: usize,
}

impl Tally {
    fn of(manifest: &Manifest, role: Role, level: Level) -> Self {
        let mut tally = Self::default();
        let of_level = manifest.requirements.iter().filter(|requirement| requirement.level == level);
        for evidence in of_level.filter_map(|requirement| requirement.evidence_for(role)) {
            match evidence.status() {
                Status::Shown => tally.shown += 1,
                Status::Open => tally.open += 1,
                Status::NotApplicable => tally.not_applicable += 1,
            }
        }
        tally
    }

    fn add(&mut self, other: Self) {
        self.shown += other.shown;
        self.open += other.open;
        self.not_applicable += other.not_applicable;
    }

    fn all(self) -> usize {
        self.shown + self.open + self.not_applicable
    }

    fn line(self) -> String {
        format!("{:>7}{:>7}{:>6}{:>8}", self.all(), self.shown, self.open, self.not_applicable)
    }
}

/// The tables, one for each role: page, then musts and shoulds with how many are shown, open and not ours.
pub fn tables(manifests: &[Manifest]) -> String {
    Role::ALL.map(|role| table(manifests, role)).join("\n")
}

fn table(manifests: &[Manifest], role: Role) -> String {
    let of = match role {
        Role::Server => "demanded of a server",
        Role::Client => "demanded of a client",
    };
    let mut text = format!("{of:<36}  musts  shown  open     n/a  shoulds  shown  open     n/a\n");
    let (mut musts, mut shoulds) = (Tally::default(), Tally::default());
    for manifest in manifests {
        let (must, should) = (Tally::of(manifest, role, Level::Must), Tally::of(manifest, role, Level::Should));
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
    for role in Role::ALL {
        for manifest in manifests {
            for requirement in &manifest.requirements {
                if let Some(missing) = requirement.evidence_for(role).and_then(|evidence| evidence.open) {
                    let (page, level, id) = (&manifest.name, requirement.level, &requirement.id);
                    let _ = writeln!(text, "{role:?}: {page}: {level:?} {id}: {missing}");
                }
            }
        }
    }
    text
}
