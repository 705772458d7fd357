//! What the command line asks for.

pub(crate) const USAGE: &str = "\
Runs real MCP clients against `steadfast serve`, and Steadfast's client against real servers, and prints two tables.

Usage: interop [--clients] [--servers] [--quick] [--filter TEXT] [--list]

  --clients      only real clients
  --servers      only real servers
  --quick        only the newest revision of each era
  --filter TEXT  only what has TEXT in its client/transport/revision/check, or servers/server/transport/revision/check
  --list         print those names, run nothing

The peers are installed from PyPI and npm into target/interop, once. Needs python3 (or what PYTHON names) with venv, and
npm. The command is the one named by STEADFAST_BIN, or is built with cargo.";

/// The options.
pub(crate) struct Options {
    pub(crate) clients: bool,
    pub(crate) servers: bool,
    pub(crate) filter: String,
    pub(crate) only_list: bool,
    pub(crate) quick: bool,
}

impl Options {
    /// `None` if there is something else among them.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options =
            Self { clients: false, servers: false, filter: String::new(), only_list: false, quick: false };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--clients" => options.clients = true,
                "--servers" => options.servers = true,
                "--filter" => options.filter = arguments.next()?,
                "--list" => options.only_list = true,
                "--quick" => options.quick = true,
                _ => return None,
            }
        }
        if !options.clients && !options.servers {
            (options.clients, options.servers) = (true, true);
        }
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<(bool, bool)> {
        let options = Options::parse(arguments.iter().map(|argument| (*argument).to_owned()))?;
        Some((options.clients, options.servers))
    }

    #[test]
    fn both_directions_are_run_unless_one_is_named() {
        assert_eq!(parsed(&["--quick"]), Some((true, true)));
        assert_eq!(parsed(&["--servers"]), Some((false, true)));
        assert_eq!(parsed(&["--clients"]), Some((true, false)));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        assert_eq!(parsed(&["--server"]), None);
    }
}
