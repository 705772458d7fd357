//! A token store in files that only their owner can read.
//!
//! The token store has one file per key, so that writers of different keys do not interfere. A file is written under a
//! temporary name and renamed, so that a reader never sees a partially written file. Each key of the token store also has a
//! lock file, which serializes token refreshes in this process and in others.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs4::fs_std::FileExt as _;

use super::{BoxFuture, TokenStore, TokenStoreError, TokenStoreKey, TokenStoreLockGuard};
use crate::client::Secret;
use crate::client::pkce::digest;

/// Interval of polling for a lock file. Polling for the lock blocks no thread, and can be cancelled.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Timeout of waiting for the lock of a token store key: longer than a metadata discovery and a token request take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);
/// Limit of the length of a file in the token store, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Stores the tokens and client registrations of an OAuth client as files in a directory.
#[derive(Clone, Debug)]
pub struct FileTokenStore(PathBuf);

impl FileTokenStore {
    /// Opens the token store in this directory, which is created if necessary. On Unix the directory must belong to the user,
    /// and its permissions are set to 0700.
    pub fn open(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        make_private(&directory)?;
        Ok(Self(directory))
    }

    fn path(&self, key: &TokenStoreKey, extension: &str) -> PathBuf {
        // A hash, since a URL may have characters that file systems do not allow.
        let name = digest(&key.to_string());
        self.0.join(format!("{name}.{extension}"))
    }

    async fn blocking<T: Send + 'static>(
        action: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, TokenStoreError> {
        match tokio::task::spawn_blocking(action).await {
            Ok(done) => done.map_err(|error| TokenStoreError::new(error.to_string())),
            Err(_) => Err(TokenStoreError::new("the file access was aborted: the tokio runtime is shutting down")),
        }
    }
}

impl TokenStore for FileTokenStore {
    fn load<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>> {
        let path = self.path(key, "secret");
        Box::pin(Self::blocking(move || read(&path)))
    }

    fn save<'a>(&'a self, key: &'a TokenStoreKey, value: &'a Secret) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        let (path, value) = (self.path(key, "secret"), value.clone());
        Box::pin(Self::blocking(move || write(&path, &value)))
    }

    fn remove<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        let path = self.path(key, "secret");
        Box::pin(Self::blocking(move || match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }))
    }

    fn lock<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<TokenStoreLockGuard, TokenStoreError>> {
        let path = self.path(key, "lock");
        Box::pin(async move {
            let file = Self::blocking(move || private().read(true).append(true).create(true).open(path)).await?;
            let end = tokio::time::Instant::now() + LOCK_TIMEOUT;
            loop {
                // `try_lock` does not block.
                match file.try_lock_exclusive() {
                    // Closing the file, at the latest at process exit, releases the lock.
                    Ok(true) => return Ok(TokenStoreLockGuard::new(file)),
                    Ok(false) => {}
                    Err(error) => return Err(TokenStoreError::new(error.to_string())),
                }
                if tokio::time::Instant::now() >= end {
                    return Err(TokenStoreError::new("timed out waiting for the lock of another process"));
                }
                tokio::time::sleep(LOCK_POLL_INTERVAL).await;
            }
        })
    }
}

fn read(path: &Path) -> io::Result<Option<Secret>> {
    use io::Read as _;

    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = zeroize::Zeroizing::new(String::new());
    match file.take(MAX_BYTES).read_to_string(&mut text) {
        // The file is damaged, and will be overwritten.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        read => read.map(|_| Some(Secret::new(std::mem::take(&mut *text)))),
    }
}

fn write(path: &Path, value: &Secret) -> io::Result<()> {
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|_| io::Error::other("random number generator failed"))?;
    let temporary = path.with_extension(format!("{:016x}.new", u64::from_ne_bytes(number)));
    let written =
        write_new(&temporary, value).and_then(|()| fs::rename(&temporary, path)).and_then(|()| sync_directory(path));
    if written.is_err() {
        // A leftover file would contain a secret.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(path: &Path, value: &Secret) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(value.expose().as_bytes())?;
    // The previous refresh token is used up, so its successor must survive a crash.
    file.sync_all()
}

/// Syncs the directory, so that the rename of a token file survives a crash too.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// Does nothing: systems other than Unix cannot open directories to sync them.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The options to open files that only their owner may read or write.
#[cfg(unix)]
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The options to open files on systems other than Unix, where the permissions are inherited from the user's directory.
#[cfg(not(unix))]
fn private() -> OpenOptions {
    OpenOptions::new()
}

#[cfg(unix)]
fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // Fails for the directory of another user, as it should.
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_private(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TempFolder(PathBuf);

    impl TempFolder {
        fn new() -> Self {
            let mut number = [0; 8];
            getrandom::fill(&mut number).unwrap();
            Self(std::env::temp_dir().join(format!("steadfast-auth-{:016x}", u64::from_ne_bytes(number))))
        }
    }

    impl Drop for TempFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn key() -> TokenStoreKey {
        TokenStoreKey::Tokens { issuer: String::from("https://a/../../x"), resource: String::from("https://b") }
    }

    #[tokio::test]
    async fn what_is_saved_is_found_by_another_store_on_the_same_directory() {
        let scratch = TempFolder::new();
        let store = FileTokenStore::open(scratch.0.join("deep")).unwrap();
        assert!(store.load(&key()).await.unwrap().is_none());
        store.save(&key(), &Secret::new("first")).await.unwrap();
        store.save(&key(), &Secret::new("second")).await.unwrap();
        let other = FileTokenStore::open(scratch.0.join("deep")).unwrap();
        assert_eq!(other.load(&key()).await.unwrap().unwrap().expose(), "second");
        other.remove(&key()).await.unwrap();
        other.remove(&key()).await.unwrap();
        assert!(store.load(&key()).await.unwrap().is_none());
        assert_eq!(fs::read_dir(scratch.0.join("deep")).unwrap().count(), 0, "nothing is left temporary");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_are_readable_only_by_their_owner() {
        use std::os::unix::fs::PermissionsExt as _;

        let scratch = TempFolder::new();
        fs::create_dir(&scratch.0).unwrap();
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o755)).unwrap();
        let store = FileTokenStore::open(&scratch.0).unwrap();
        store.save(&key(), &Secret::new("x")).await.unwrap();
        let _lock = store.lock(&key()).await.unwrap();
        assert_eq!(fs::metadata(&scratch.0).unwrap().permissions().mode() & 0o777, 0o700);
        let entries: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(Result::unwrap).collect();
        assert_eq!(entries.len(), 2);
        for entry in entries {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
        }
    }

    #[tokio::test]
    async fn a_file_that_is_damaged_is_as_good_as_none() {
        let scratch = TempFolder::new();
        let store = FileTokenStore::open(&scratch.0).unwrap();
        fs::write(store.path(&key(), "secret"), [0xff, 0xfe]).unwrap();
        assert_eq!(store.load(&key()).await, Ok(None));
        store.save(&key(), &Secret::new("x")).await.unwrap();
        assert_eq!(store.load(&key()).await.unwrap().unwrap().expose(), "x");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
        let scratch = TempFolder::new();
        let store = FileTokenStore::open(scratch.0.join("store")).unwrap();
        let elsewhere = scratch.0.join("elsewhere");
        fs::write(&elsewhere, "old").unwrap();
        std::os::unix::fs::symlink(&elsewhere, store.path(&key(), "secret")).unwrap();
        store.save(&key(), &Secret::new("new")).await.unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "old");
        assert_eq!(store.load(&key()).await.unwrap().unwrap().expose(), "new");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_had_by_one_store_at_a_time() {
        let scratch = TempFolder::new();
        let (one, other) = (FileTokenStore::open(&scratch.0).unwrap(), FileTokenStore::open(&scratch.0).unwrap());
        let held = one.lock(&key()).await.unwrap();
        let refused = other.lock(&key()).await.unwrap_err();
        assert_eq!(refused.to_string(), "timed out waiting for the lock of another process");
        drop(held);
        other.lock(&key()).await.unwrap();
    }
}
