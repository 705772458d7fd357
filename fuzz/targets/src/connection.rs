//! A history of a connection, either side: whatever happens in whatever order, the laws hold after every step.
//!
//! The target plays the driver and the peer. It keeps books of its own on what it said, what it was asked and what it
//! saw on the wire, and compares them with the connection after every step:
//!
//! - nothing panics, and the limits are kept;
//! - each accepted request is answered at most once, and exactly once if the connection lives on (L1, L2);
//! - nothing about a cancelled request goes out, and nothing stays queued (L3);
//! - an id in flight is not taken twice, and its refusal does not look like an answer (L8);
//! - each call ends exactly once and says truly whether it was sent (L5, L10);
//! - what waits to be written grows by no more than a step accounts for (L7);
//! - a deadline that was handled is not due any more;
//! - once closed, nothing more comes out.
//!
//! Input: a script, see `operation`.

mod calls;
mod frame;
mod hearing;
mod ledger;
mod operation;
mod setting;
mod speech;
mod world;

use arbitrary::{Arbitrary, Unstructured};

use operation::Script;
use world::World;

/// Longer histories find nothing that shorter ones do not, and cost time.
const LONGEST_SCRIPT: usize = 4096;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    if bytes.len() > LONGEST_SCRIPT {
        return;
    }
    let Ok(script) = Script::arbitrary(&mut Unstructured::new(bytes)) else { return };
    let mut world = World::new(script.side, script.limits);
    for operation in &script.operations {
        world.apply(operation);
    }
    world.finish();
}
