//! The client with an authorization server and a resource server on loopback, and a task as the browser.

mod faults;
mod flows;
mod named;
mod refresh;
mod secrecy;
mod shown;
mod sign_out;
mod site;
mod step_up;
mod wire;
