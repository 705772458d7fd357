//! The client against an authorization server and a resource server on loopback, with a browser that is a task.

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
