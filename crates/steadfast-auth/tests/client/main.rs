//! The client against an authorization server and a resource server on loopback, with a browser that is a task.

mod flows;
mod refresh;
mod secrecy;
mod site;
mod wire;
