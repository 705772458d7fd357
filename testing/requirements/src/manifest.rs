//! The manifest: one file for each page of the specification, or for one page that moved between revisions.
//!
//! What the types can refuse is refused here, while a file is read: an unknown level, side, revision or member. What
//! takes a look at several entries is judged in [`crate::check`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use steadfast_model::Revision;

/// One file of the manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name of the file, without its ending.
    #[serde(skip)]
    pub name: String,
    /// The pages that it covers.
    #[serde(rename = "page")]
    pub pages: Vec<Page>,
    /// What they demand.
    #[serde(rename = "requirement", default)]
    pub requirements: Vec<Requirement>,
}

/// One page of the specification in one revision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The revision.
    pub revision: Revision,
    /// Where the page is, below its revision and without its ending.
    pub path: String,
    /// How many normative words stood under each heading when the entries were written. The words before the first
    /// heading are those of `top`.
    pub words: BTreeMap<String, usize>,
}

impl Page {
    /// Where the page is in a checkout of the specification.
    pub fn file(&self) -> PathBuf {
        let folder = if self.path.starts_with("seps/") {
            // The tasks extension is specified by the proposal that made it, which belongs to no revision.
            PathBuf::from("docs")
        } else if self.path.starts_with("tutorials/") {
            // The pages of the specification refer to this one for what they demand.
            Path::new("docs/docs").join(self.revision.as_str())
        } else {
            Path::new("docs/specification").join(self.revision.as_str())
        };
        folder.join(format!("{}.mdx", self.path))
    }
}

/// One thing that the specification demands.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Its name, which stays.
    pub id: String,
    /// Where it stands: page and heading, for each revision that has it. A place named twice accounts for two words.
    pub at: BTreeMap<Revision, Places>,
    /// How strongly it is demanded.
    pub level: Level,
    /// Of whom.
    pub side: Side,
    /// What is demanded, in our words.
    pub text: String,
    /// True if another entry accounts for the word that demands it: a word may stand before a list.
    #[serde(default)]
    pub part: bool,
    /// The tests that show it. This and the next two are of our server, if it is demanded of both sides.
    #[serde(default)]
    tests: Vec<String>,
    /// What is missing.
    open: Option<String>,
    /// Why it is not ours to fulfil.
    not_applicable: Option<String>,
    /// The evidence for the client, if both sides are required.
    client: Option<Evidence>,
}

/// The evidence for one side: exactly one of the three.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The tests that show it.
    #[serde(default)]
    pub tests: Vec<String>,
    /// What is missing.
    pub open: Option<String>,
    /// Why it is not ours to fulfil.
    pub not_applicable: Option<String>,
}

/// One place or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Places {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Places {
    /// Each place.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let places = match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        };
        places.iter().map(String::as_str)
    }
}

/// How strongly something is demanded.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// MUST, MUST NOT, SHALL, REQUIRED.
    Must,
    /// SHOULD, SHOULD NOT, RECOMMENDED.
    Should,
}

/// Of whom something is demanded.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Servers.
    Server,
    /// Clients, and the programs that they are part of.
    Client,
    /// Both.
    Both,
    /// Those between and around them: authorization servers, proxies, operators. Named, and not judged.
    Other,
}

/// One of the two sides that are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Our server.
    Server,
    /// Our client.
    Client,
}

impl Role {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Server, Self::Client];
}

/// The status of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A test shows it.
    Shown,
    /// Something is missing.
    Open,
    /// It is not ours.
    NotApplicable,
}

impl Requirement {
    /// The evidence for a role; `None` if nothing is demanded of it, or the manifest has no evidence for it.
    pub fn evidence_for(&self, role: Role) -> Option<Evidence> {
        match (self.side, role) {
            (Side::Server | Side::Both, Role::Server) | (Side::Client, Role::Client) => Some(self.evidence()),
            (Side::Both, Role::Client) => self.client_evidence(),
            _ => None,
        }
    }

    /// The evidence for the side that the requirement is for, or for the server if for both.
    pub fn evidence(&self) -> Evidence {
        Evidence { tests: self.tests.clone(), open: self.open.clone(), not_applicable: self.not_applicable.clone() }
    }

    /// The separate evidence for the client.
    pub fn client_evidence(&self) -> Option<Evidence> {
        self.client.clone()
    }
}

impl Evidence {
    /// The status that the evidence gives.
    pub fn status(&self) -> Status {
        if self.open.is_some() {
            Status::Open
        } else if self.not_applicable.is_some() {
            Status::NotApplicable
        } else {
            Status::Shown
        }
    }

    /// How many of the three alternatives the manifest has.
    pub fn alternatives(&self) -> usize {
        let given = [!self.tests.is_empty(), self.open.is_some(), self.not_applicable.is_some()];
        given.into_iter().filter(|&given| given).count()
    }
}

/// Reads every file of the manifest, in the order of their names.
///
/// # Panics
/// If a file cannot be read: the manifest is part of the sources.
pub fn load() -> Vec<Manifest> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifest");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Manifest {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut manifest: Manifest = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    manifest.name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    manifest
}
