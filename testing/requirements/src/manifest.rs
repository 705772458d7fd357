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
    beyond: Option<String>,
    /// How our client stands with what is demanded of both sides.
    client: Option<Case>,
}

/// What there is to say for a side: one of the three.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The tests that show it.
    #[serde(default)]
    pub tests: Vec<String>,
    /// What is missing.
    pub open: Option<String>,
    /// Why it is not ours to fulfil.
    pub beyond: Option<String>,
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
pub enum Party {
    /// Our server.
    Server,
    /// Our client.
    Client,
}

impl Party {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Server, Self::Client];
}

/// Where we stand with a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A test shows it.
    Shown,
    /// Something is missing.
    Open,
    /// It is not ours.
    Beyond,
}

impl Requirement {
    /// The case for a party; `None` if nothing is demanded of it, or the manifest has no case for it.
    pub fn case_of(&self, party: Party) -> Option<Case> {
        match (self.side, party) {
            (Side::Server | Side::Both, Party::Server) | (Side::Client, Party::Client) => Some(self.case()),
            (Side::Both, Party::Client) => self.client_apart(),
            _ => None,
        }
    }

    /// The first case: for the side that the requirement is for, or for the server if for both.
    pub fn case(&self) -> Case {
        Case { tests: self.tests.clone(), open: self.open.clone(), beyond: self.beyond.clone() }
    }

    /// The separate case for the client.
    pub fn client_apart(&self) -> Option<Case> {
        self.client.clone()
    }
}

impl Case {
    /// Where we stand with it.
    pub fn standing(&self) -> Standing {
        if self.open.is_some() {
            Standing::Open
        } else if self.beyond.is_some() {
            Standing::Beyond
        } else {
            Standing::Shown
        }
    }

    /// How many of the three are given.
    pub fn given(&self) -> usize {
        let given = [!self.tests.is_empty(), self.open.is_some(), self.beyond.is_some()];
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
