//! Login, stored tokens, and logout.

use crate::kit::{RunningCommand, TempFolder, run, text};
use crate::site::Site;

const REVISION: [&str; 2] = ["--revision", "2026-07-28"];

fn call<'a>(url: &'a str, store: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["call", url, "whoami", "--token-store", store], &REVISION[..], more].concat()
}

#[test]
fn a_login_lasts_until_logout() {
    let (site, folder) = (Site::locked(), TempFolder::new("login"));
    let (url, store) = (site.url(), folder.path("tokens"));
    let mut logging_in = RunningCommand::through_pipes(&call(&url, &store, &["--login"]));
    let shown = logging_in.wait_for("\n\n  http://") + &logging_in.wait_for("\n");
    site.log_in(&shown);
    let (code, printed, said) = logging_in.end();
    assert_eq!((code, printed.trim()), (Some(0), "ada"), "{said}");
    assert!(!said.contains("browser"), "there is no terminal to ask at: {said}");

    let again = run(&call(&url, &store, &[]));
    assert_eq!((again.status.code(), text(&again.stdout).trim()), (Some(0), "ada"), "{}", text(&again.stderr));
    assert_eq!(site.count("/authorize"), 1);

    let out = run(&["logout", &url, "--token-store", &store]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let after = run(&call(&url, &store, &[]));
    assert_eq!(after.status.code(), Some(6), "{}", text(&after.stderr));
    assert_eq!(site.count("/authorize"), 1);
}

/// The number of stored secrets.
fn stored(store: &str) -> usize {
    let files = std::fs::read_dir(store).expect("it is there").map_while(Result::ok);
    files.filter(|file| file.path().extension().is_some_and(|extension| extension == "secret")).count()
}

#[test]
fn who_logs_out_stays_registered_unless_they_say_otherwise() {
    let (site, folder) = (Site::locked(), TempFolder::new("registered"));
    let (url, store) = (site.url(), folder.path("tokens"));
    let log_in = || {
        let mut logging_in = RunningCommand::through_pipes(&call(&url, &store, &["--login"]));
        let shown = logging_in.wait_for("\n\n  http://") + &logging_in.wait_for("\n");
        site.log_in(&shown);
        assert_eq!(logging_in.end().0, Some(0));
    };
    log_in();
    assert_eq!(run(&["logout", &url, "--token-store", &store]).status.code(), Some(0));
    assert_eq!(stored(&store), 1, "the registration");
    log_in();
    let forget = ["logout", &url, "--token-store", &store, "--forget-registration"];
    assert_eq!(run(&forget).status.code(), Some(0));
    assert_eq!(stored(&store), 0);
    let again = run(&forget);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stderr).contains("no client registration"), "{}", text(&again.stderr));
}

#[cfg(unix)]
#[test]
fn token_files_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let (site, folder) = (Site::locked(), TempFolder::new("rights"));
    let (url, store) = (site.url(), folder.path("tokens"));
    let mut logging_in = RunningCommand::through_pipes(&call(&url, &store, &["--login"]));
    let shown = logging_in.wait_for("\n\n  http://") + &logging_in.wait_for("\n");
    site.log_in(&shown);
    assert_eq!(logging_in.end().0, Some(0));
    let rights = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let store = std::path::Path::new(&store);
    assert_eq!(rights(store), 0o700);
    let kept: Vec<_> = std::fs::read_dir(store).expect("it is there").map_while(Result::ok).collect();
    assert!(!kept.is_empty());
    for file in kept {
        assert_eq!(rights(&file.path()), 0o600, "{}", file.path().display());
    }
}

#[test]
fn without_login_the_exit_code_is_6_and_no_metadata_is_requested() {
    let (site, folder) = (Site::locked(), TempFolder::new("outside"));
    let (url, store) = (site.url(), folder.path("tokens"));
    for revision in [&[][..], &REVISION[..]] {
        let refused = run(&[&["call", &url, "whoami", "--token-store", &store], revision].concat());
        assert_eq!(refused.status.code(), Some(6), "{}", text(&refused.stderr));
    }
    assert_eq!(site.count("/.well-known/oauth-protected-resource/mcp"), 0);
    assert!(!std::path::Path::new(&store).exists());
}

#[test]
fn client_credentials_need_no_user() {
    let (site, folder) = (Site::locked(), TempFolder::new("alone"));
    let (url, store) = (site.url(), folder.path("tokens"));
    let issuer = url.trim_end_matches("/mcp");
    let called = run(&call(&url, &store, &alone(issuer)));
    assert_eq!((called.status.code(), text(&called.stdout).trim()), (Some(0), "ada"), "{}", text(&called.stderr));
    assert_eq!((site.count("/authorize"), site.count("/register")), (0, 0));
}

#[test]
fn a_client_secret_is_sent_only_to_its_issuer() {
    let (site, folder) = (Site::locked(), TempFolder::new("elsewhere"));
    let (url, store) = (site.url(), folder.path("tokens"));
    let refused = run(&call(&url, &store, &alone("https://issuer.example.com")));
    assert_ne!(refused.status.code(), Some(0));
    assert_eq!(site.count("/token"), 0, "{}", text(&refused.stderr));
}

/// The options for client credentials at this issuer.
fn alone(issuer: &str) -> [&str; 7] {
    ["--client-id", "me", "--client-secret-env", "PATH", "--client-credentials", "--issuer", issuer]
}

#[cfg(unix)]
#[test]
fn an_interrupt_cancels_a_login() {
    let (site, folder) = (Site::locked(), TempFolder::new("given-up"));
    let (url, store) = (site.url(), folder.path("tokens"));
    let mut logging_in = RunningCommand::through_pipes(&call(&url, &store, &["--login"]));
    logging_in.wait_for("/authorize?");
    logging_in.interrupt();
    assert_eq!(logging_in.end().0, Some(130));
}
