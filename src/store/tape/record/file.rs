//! The file: a whole HAR after every entry, whenever the process is killed.
//!
//! The closing brackets are overwritten by the next entry and the closing brackets, in one write. That alone is
//! not enough: a process that is killed in the middle of a long write leaves the front part of it, and a file
//! that no viewer opens. So there are two files. The entry is added to the one that nobody sees
//! (`.NAME.next`), which then takes the other's name in one step (`rename`); the other becomes the next one to
//! write to, and gets the entry that it lacks together with the following one. Whoever opens the file by its
//! name finds a whole one at every moment, at the price of writing each entry twice, whatever the length of
//! the file.
//!
//! `kill -9` can leave `.NAME.next` and `.NAME.prev` behind (both scrubbed as the file is); the next recording
//! takes them away. A power failure is not provided for: the file is flushed to the disk at the end only.
//! Where a file system has no hard links, entries are written in place, with the small danger told above.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

const TAIL: &str = "\n]}}\n";

/// A HAR file that grows.
#[derive(Debug)]
pub(super) struct HarFile {
    path: PathBuf,
    /// The file by its name.
    shown: Copy,
    /// The one that the next entry is written to; `None` where there are no hard links.
    hidden: Option<Copy>,
    next: PathBuf,
    prev: PathBuf,
    /// What the hidden one lacks.
    behind: String,
    entries: u64,
}

#[derive(Debug)]
struct Copy {
    file: File,
    /// Where the closing brackets begin.
    end: u64,
}

impl Copy {
    fn add(&mut self, text: &str) -> io::Result<()> {
        let bytes = format!("{text}{TAIL}");
        self.file.write_all_at(bytes.as_bytes(), self.end)?;
        // What a write that failed has left behind the new end.
        let end = self.end + length(text);
        let whole = end + length(TAIL);
        if self.file.metadata()?.len() > whole {
            self.file.set_len(whole)?;
        }
        self.end = end;
        Ok(())
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

impl HarFile {
    /// Makes the file; one that exists is only replaced when `force` says so.
    pub(super) fn create(path: &Path, force: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        let options = if force { options.create(true).truncate(true) } else { options.create_new(true) };
        let mut shown = Copy { file: options.open(path)?, end: 0 };
        let head = head();
        shown.add(&head)?;
        // A link is followed: it goes on pointing to the recording.
        let path = path.canonicalize()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let beside = |end: &str| path.with_file_name(format!(".{name}.{end}"));
        let (next, prev) = (beside("next"), beside("prev"));
        for left_over in [&next, &prev] {
            remove(left_over)?;
        }
        let hidden = if std::fs::hard_link(&path, &prev).is_ok() {
            remove(&prev)?;
            let mut hidden = Copy { file: File::create_new(&next)?, end: 0 };
            hidden.add(&head)?;
            Some(hidden)
        } else {
            tracing::warn!("no hard links here: a kill in the middle of an entry may damage the recording");
            None
        };
        Ok(Self { path, shown, hidden, next, prev, behind: String::new(), entries: 0 })
    }

    /// How many entries it has.
    pub(super) const fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds an entry (JSON). After an error the file is as it was before.
    pub(super) fn add(&mut self, entry: &str) -> io::Result<()> {
        let text = if self.entries == 0 { format!("\n{entry}") } else { format!(",\n{entry}") };
        match &mut self.hidden {
            None => self.shown.add(&text)?,
            Some(hidden) => {
                let before = hidden.end;
                if let Err(error) = hidden
                    .add(&format!("{}{text}", self.behind))
                    .and_then(|()| change(&self.path, &self.next, &self.prev))
                {
                    hidden.end = before;
                    return Err(error);
                }
                std::mem::swap(&mut self.shown, hidden);
                self.behind = text;
            }
        }
        self.entries += 1;
        Ok(())
    }

    /// Flushes the file to the disk and takes the hidden one away.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.shown.file.sync_all()?;
        if self.hidden.take().is_some() {
            remove(&self.next)?;
        }
        Ok(())
    }
}

/// Gives the next file the name of the present one, and the other way round.
fn change(path: &Path, next: &Path, prev: &Path) -> io::Result<()> {
    remove(prev)?;
    std::fs::hard_link(path, prev)?;
    std::fs::rename(next, path)?;
    std::fs::rename(prev, next)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn head() -> String {
    let creator = json!({ "name": "tillgate", "version": env!("CARGO_PKG_VERSION") });
    let comment =
        "Recorded by tillgate: secrets and personal data are stand-ins, named per entry in _tillgate.";
    format!(r#"{{"log":{{"version":"1.2","creator":{creator},"comment":"{comment}","entries":["#)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn entries(path: &Path) -> Vec<Value> {
        let har: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        har["log"]["entries"].as_array().unwrap().clone()
    }

    #[test]
    fn the_file_is_whole_after_every_entry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.har");
        let mut file = HarFile::create(&path, false).unwrap();
        assert!(entries(&path).is_empty());
        for number in 0..50 {
            let text = "x".repeat(number * 997);
            file.add(&json!({ "n": number, "text": text }).to_string()).unwrap();
            let found = entries(&path);
            assert_eq!(found.len(), number + 1);
            assert!(found.iter().enumerate().all(|(at, entry)| entry["n"] == at));
        }
        file.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_half_written_entry_is_not_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.har");
        let mut file = HarFile::create(&path, false).unwrap();
        for number in 0..3 {
            file.add(&json!({ "n": number }).to_string()).unwrap();
        }
        // What a kill in the middle of the next write leaves: its front part, over the closing brackets.
        let hidden = file.hidden.as_mut().unwrap();
        hidden.file.write_all_at(b",\n{\"n\":2},\n{\"n\":3,\"text\":\"xxxxx", hidden.end).unwrap();
        assert_eq!(entries(&path).len(), 3);
        // A write that only failed is written over by the next one.
        file.add("{\"n\":9}").unwrap();
        assert_eq!(entries(&path).len(), 4);
        drop(file);
        let again = HarFile::create(&path, true).unwrap();
        assert!(entries(&path).is_empty());
        drop(again);
    }

    #[test]
    fn an_existing_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.har");
        std::fs::write(&path, "mine").unwrap();
        assert_eq!(HarFile::create(&path, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
