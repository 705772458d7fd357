//! Exhaustive search: every interleaving of a small world around the real connection.
//!
//! Depth first over `world::World`, with every law checked after every step, and what has to happen in the end checked
//! where nothing is under way any more. A world that was seen before is not searched again: the fingerprint of the connection, what
//! the environment has left to do and what the checkers remember make up its identity. That this identity is good is
//! checked too: [`cross_check`] searches to a small depth with and without it, and both have to see the same.

mod plans;
mod world;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

pub use plans::names;

use crate::law::{Law, Violation};
use crate::observation::trace::{FnvHasher, Trace};
use crate::script::shrink::shrink;
use world::{Action, Plan, World};

/// How much of the worlds to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// The least that still has everything in it: for a test in an unoptimised build.
    Tiny,
    /// Worlds that are searched in a minute.
    Small,
    /// Everything.
    Full,
}

/// What a search saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Different states of the world.
    pub states: usize,
    /// Steps from one to another.
    pub steps: usize,
    /// States in which nothing is under way any more.
    pub quiet: usize,
    /// The longest path.
    pub deepest: usize,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.states += other.states;
        self.steps += other.steps;
        self.quiet += other.quiet;
        self.deepest = self.deepest.max(other.deepest);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, steps, quiet, deepest } = self;
        write!(formatter, "states={states} steps={steps} quiet={quiet} deepest={deepest}")
    }
}

/// A path on which a law was broken, as short as it could be made.
#[derive(Debug, Clone)]
pub struct Counterexample {
    /// The world.
    pub world: &'static str,
    /// What was broken.
    pub violations: Vec<Violation>,
    /// How.
    pub path: Vec<String>,
    /// What was seen on the way.
    pub trace: Vec<String>,
}

impl Counterexample {
    /// Whether this law is among those that were broken.
    pub fn breaks(&self, law: Law) -> bool {
        self.violations.iter().any(|violation| violation.law == law)
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "in the world \"{}\":", self.world)?;
        for violation in &self.violations {
            writeln!(formatter, "  {violation}")?;
        }
        for step in &self.path {
            writeln!(formatter, "    {step}")?;
        }
        writeln!(formatter, "  as it was seen:")?;
        for line in &self.trace {
            writeln!(formatter, "    {line}")?;
        }
        Ok(())
    }
}

/// Searches one world to its end.
pub fn explore(name: &str, size: Size) -> Result<Totals, Box<Counterexample>> {
    let mut totals = Totals::default();
    for plan in plans::plans(name, size) {
        totals += Search::new(Arc::new(plan)).run()?;
    }
    Ok(totals)
}

/// Searches a world for a violation of one law, whatever else is broken. This is how the checkers are shown to work.
pub fn hunt(name: &str, size: Size, law: Law) -> Option<Box<Counterexample>> {
    plans::plans(name, size).into_iter().find_map(|plan| {
        let mut search = Search::new(Arc::new(plan));
        search.wanted = Some(law);
        search.run().err()
    })
}

/// Searches a world to a depth with and without recognising states that were seen before. Both have to reach the same
/// states, and from states that are taken for the same the same has to follow. Returns how many states there are, and how
/// many paths led to them.
pub fn cross_check(name: &str, depth: usize) -> Result<(usize, usize), String> {
    let (mut states, mut paths) = (0, 0);
    for plan in plans::plans(name, Size::Full) {
        let plan = Arc::new(plan);
        let mut walk = Walk::default();
        walk.every_path(&World::new(Arc::clone(&plan), Trace::off()), depth)?;
        let every: BTreeSet<(u64, bool)> = walk.seen.keys().copied().collect();
        let recognised = by_levels(&plan, depth);
        if recognised != every {
            let (one, other) = (recognised.len(), every.len());
            return Err(format!(
                "in the world \"{}\": {one} states when they are recognised, {other} when not",
                plan.name
            ));
        }
        states += every.len();
        paths += walk.paths;
    }
    Ok((states, paths))
}

/// The states within so many steps, searched level by level, each state once.
fn by_levels(plan: &Arc<Plan>, depth: usize) -> BTreeSet<(u64, bool)> {
    let mut seen = BTreeSet::new();
    let mut level = vec![World::new(Arc::clone(plan), Trace::off())];
    seen.extend(level.iter().map(identity_and_verdict));
    let mut actions = Vec::new();
    for _ in 0..depth {
        let mut next = Vec::new();
        for world in level {
            world.actions(&mut actions);
            for action in &actions {
                let mut after = world.clone();
                after.run_possible(*action);
                if seen.insert(identity_and_verdict(&after)) {
                    next.push(after);
                }
            }
        }
        level = next;
    }
    seen
}

/// A walk along every path there is.
#[derive(Default)]
struct Walk {
    path: Vec<Action>,
    paths: usize,
    /// How each state was first reached, and what follows from it where that was looked at.
    seen: BTreeMap<(u64, bool), (Vec<Action>, Vec<u64>)>,
}

impl Walk {
    fn every_path(&mut self, world: &World, depth: usize) -> Result<(), String> {
        let mut actions = Vec::new();
        if depth > 0 {
            world.actions(&mut actions);
        }
        if actions.is_empty() {
            self.paths += 1;
        }
        let after = |action: &Action| {
            let mut after = world.clone();
            after.run_possible(*action);
            after
        };
        let worlds: Vec<World> = actions.iter().map(after).collect();
        self.compare(world, worlds.iter().map(identity).collect())?;
        for (action, after) in actions.into_iter().zip(worlds) {
            self.path.push(action);
            self.every_path(&after, depth - 1)?;
            self.path.pop();
        }
        Ok(())
    }

    fn compare(&mut self, world: &World, follows: Vec<u64>) -> Result<(), String> {
        let (first, known) =
            self.seen.entry(identity_and_verdict(world)).or_insert_with(|| (self.path.clone(), Vec::new()));
        if known.is_empty() {
            *known = follows;
        } else if !follows.is_empty() && *known != follows {
            let tell =
                |path: &[Action]| path.iter().map(|action| world.describe(*action)).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "taken for the same, and not:\n  {}\n  {}\nin the world \"{}\"",
                tell(first),
                tell(&self.path),
                world.plan.name
            ));
        }
        Ok(())
    }
}

fn identity_and_verdict(world: &World) -> (u64, bool) {
    (identity(world), world.endpoint.is_lawful())
}

fn identity(world: &World) -> u64 {
    let mut mix = FnvHasher::default();
    world.hash(&mut mix);
    mix.finish()
}

/// A state on the path that is being searched.
struct Place {
    world: World,
    actions: Vec<Action>,
    next: usize,
}

struct Search {
    plan: Arc<Plan>,
    seen: HashSet<u64, BuildHasherDefault<FnvHasher>>,
    totals: Totals,
    /// Only this law is looked at.
    wanted: Option<Law>,
}

impl Search {
    fn new(plan: Arc<Plan>) -> Self {
        Self { plan, seen: HashSet::default(), totals: Totals::default(), wanted: None }
    }

    fn run(mut self) -> Result<Totals, Box<Counterexample>> {
        let begin = World::new(Arc::clone(&self.plan), Trace::off());
        self.seen.insert(identity(&begin));
        self.totals.states = 1;
        let mut path = vec![self.place(begin, &[])?];
        while let Some(place) = path.last_mut() {
            let Some(action) = place.actions.get(place.next).copied() else {
                path.pop();
                continue;
            };
            place.next += 1;
            let mut world = place.world.clone();
            world.run_possible(action);
            self.totals.steps += 1;
            self.judge(&mut world, &path)?;
            if self.seen.insert(identity(&world)) {
                self.totals.states += 1;
                self.totals.deepest = self.totals.deepest.max(path.len());
                let place = self.place(world, &path)?;
                path.push(place);
            }
        }
        Ok(self.totals)
    }

    /// What can happen from here; where nothing will happen by itself, what had to happen is checked.
    fn place(&mut self, mut world: World, path: &[Place]) -> Result<Place, Box<Counterexample>> {
        if world.is_quiet() {
            self.totals.quiet += 1;
            world.quiet();
            self.judge(&mut world, path)?;
        }
        let mut actions = Vec::new();
        world.actions(&mut actions);
        Ok(Place { world, actions, next: 0 })
    }

    fn judge(&self, world: &mut World, path: &[Place]) -> Result<(), Box<Counterexample>> {
        if world.endpoint.is_lawful() {
            return Ok(());
        }
        let violations = world.endpoint.violations();
        let Some(law) = self.concern(&violations) else { return Ok(()) };
        let taken: Vec<Action> =
            path.iter().filter_map(|place| place.actions.get(place.next.checked_sub(1)?).copied()).collect();
        Err(Box::new(self.explain(&taken, law)))
    }

    fn concern(&self, violations: &[Violation]) -> Option<Law> {
        let wanted = |violation: &&Violation| self.wanted.is_none_or(|law| violation.law == law);
        violations.iter().find(wanted).map(|violation| violation.law)
    }

    fn explain(&self, path: &[Action], law: Law) -> Counterexample {
        let breaks = |path: &[Action]| self.replay(path).1.iter().any(|violation| violation.law == law);
        let path = shrink(path, breaks);
        let (world, violations) = self.replay(&path);
        Counterexample {
            world: self.plan.name,
            violations,
            path: path.iter().map(|action| world.describe(*action)).collect(),
            trace: world.trace().lines().to_vec(),
        }
    }

    /// Walks a path again. Where it ends with nothing under way, that is looked at too.
    fn replay(&self, path: &[Action]) -> (World, Vec<Violation>) {
        let mut world = World::new(Arc::clone(&self.plan), Trace::kept());
        for action in path {
            world.run_action(*action);
        }
        if world.is_quiet() {
            world.quiet();
        }
        let violations = world.endpoint.violations();
        (world, violations)
    }
}
