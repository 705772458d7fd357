//! The stories that started this, each by its name; and, in a build with `--cfg mutants`, that each goes wrong without the
//! guard that keeps it.

use sim::stories::{STORIES, Story};

fn story(name: &str) -> &'static Story {
    STORIES.iter().find(|story| story.name == name).expect("a story of that name")
}

/// Goes well; and without its guard goes wrong in the way that its law is there to prevent.
fn goes_well(name: &str) {
    let story = story(name);
    assert_eq!(story.run(), []);
    #[cfg(mutants)]
    {
        use steadfast_proto::mutant::{Mutant, with};
        let guard =
            Mutant::ALL.iter().find(|mutant| format!("{mutant:?}") == story.guard).expect("a fault of that name");
        let broken = with(*guard, || story.run());
        assert!(broken.iter().any(|violation| violation.law == story.law), "{guard:?} shows as {broken:?}");
    }
}

#[test]
fn a_close_while_a_handler_runs_and_then_answers() {
    goes_well("a close while a handler runs and then answers");
}

#[test]
fn bytes_that_are_not_utf_8() {
    goes_well("bytes that are not UTF-8");
}

#[test]
fn a_cancellation_between_the_handlers_end_and_its_answer() {
    goes_well("a cancellation between the handler's end and its answer");
}

#[test]
fn two_handlers_waiting_on_the_client_when_the_transport_closes() {
    goes_well("two handlers waiting on the client when the transport closes");
}

#[test]
fn the_two_ends_of_a_stream_closing_in_either_order() {
    goes_well("the two ends of a stream closing in either order");
}
