//! What the pages may change with `--write`: tags, study files of the working folder, and runs of them.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use wirelab_model::study::Study;
use wirelab_plan::{MAX_TEXT, StudyError};
use wirelab_run::{Run, tags};
use wirelab_serve::{
    Checked, Draft, Library, LibraryError, Mistake, Order, Saved, Source, Sources, Started, State, Workshop,
};

use super::library::{RunFolders, refused};
use super::runner::{Runner, in_progress};
use crate::commands::studies;
use crate::failure::Failure;
use crate::place::program;

/// The longest name of a file in bytes.
const MAX_NAME: usize = 100;

/// The permissions of a new file, before the umask takes some away.
const NEW_FILE: u32 = 0o666;

/// The working folder and the folder of runs.
pub(super) struct Desk {
    working: PathBuf,
    /// The folder of runs, as the user named it.
    folder: PathBuf,
    runs: Arc<RunFolders>,
    runner: Arc<Runner>,
}

fn wrong(message: impl ToString) -> LibraryError {
    LibraryError::Refused(message.to_string())
}

impl Desk {
    /// # Errors
    /// If the working folder or the folder of runs cannot be found.
    pub(super) fn of(folder: &Path) -> Result<Self, Failure> {
        let found = |error| Failure::input(format!("cannot find the working folder or {}: {error}", folder.display()));
        let working = std::env::current_dir().map_err(found)?;
        let runner = Arc::new(Runner::of(folder).map_err(found)?);
        let runs = Arc::new(RunFolders::of(folder, Some(Arc::clone(&runner)))?);
        Ok(Self { working, folder: folder.to_owned(), runs, runner })
    }

    /// The runs, among them what this server starts.
    pub(super) fn runs(&self) -> Arc<RunFolders> {
        Arc::clone(&self.runs)
    }

    /// Ends the run in progress, if this server started it.
    pub(super) fn end(&self) {
        self.runner.end();
    }

    /// The path of a study file in the working folder.
    fn file(&self, name: &str) -> Result<PathBuf, LibraryError> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let is_plain = name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_part);
        if is_plain && name.len() <= MAX_NAME && name.strip_suffix(".toml").is_some_and(|stem| !stem.is_empty()) {
            return Ok(self.working.join(name));
        }
        Err(wrong(
            "the file needs a name such as my-study.toml: letters, digits, `.`, `-` and `_`, and .toml at the end. It \
             is in the working folder",
        ))
    }

    /// The study files in the working folder, by name. Other TOML files have no table of factors.
    fn files(&self) -> std::io::Result<Vec<String>> {
        let names = fs::read_dir(&self.working)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let is_study = |name: &String| {
            let Ok(path) = self.file(name) else { return false };
            let text = studies::text(&path.display().to_string()).unwrap_or_default();
            text.lines().any(|line| line.trim_start().starts_with("[factors"))
        };
        let mut found: Vec<_> = names.filter(is_study).collect();
        found.sort();
        Ok(found)
    }

    /// Writes a file under another name first, so that a reader never sees a part of it.
    fn write(&self, path: &Path, text: &str, replace: bool) -> Result<Saved, LibraryError> {
        let failed = |error: &std::io::Error| LibraryError::Failed(format!("cannot write {}: {error}", path.display()));
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(NEW_FILE))
            .tempfile_in(&self.working)
            .map_err(|error| failed(&error))?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|error| failed(&error))?;
        let kept = if replace { file.persist(path) } else { file.persist_noclobber(path) };
        match kept {
            Ok(_) => Ok(Saved::Written),
            Err(error) if !replace && error.error.kind() == ErrorKind::AlreadyExists => Ok(Saved::Exists),
            Err(error) => Err(failed(&error.error)),
        }
    }
}

impl Workshop for Desk {
    fn sources(&self) -> Result<Sources, LibraryError> {
        let folder = self.working.display().to_string();
        let files = self.files().map_err(|error| LibraryError::Failed(format!("cannot list {folder}: {error}")))?;
        let titled = wirelab_plan::builtin().iter().filter_map(|builtin| {
            let study = wirelab_plan::parse(builtin.text, builtin.name).ok()?;
            Some((study.name, study.title))
        });
        Ok(Sources { builtin: titled.collect(), files, folder })
    }

    fn open(&self, source: &Source) -> Result<Draft, LibraryError> {
        let (file, text) = match source {
            Source::Builtin(name) => {
                let builtin = wirelab_plan::find(name).map_err(wrong)?;
                let own = format!("my-{name}");
                let text = studies::renamed(builtin.text, builtin.name, &own).map_err(|failure| refused(&failure))?;
                (format!("{own}.toml"), text)
            }
            Source::File(name) => {
                let path = self.file(name)?.display().to_string();
                let text = studies::text(&path).map_err(|failure| refused(&failure))?;
                return Ok(Draft { file: name.clone(), known: Some(text.clone()), text, ..Draft::default() });
            }
            Source::Run(name) => {
                let run = Run::open(&self.runs.path(name)?).map_err(wrong)?;
                let study = &run.manifest().study;
                (format!("{}.toml", study.name), copy(study, name)?)
            }
        };
        Ok(Draft { file, text, ..Draft::default() })
    }

    fn completions(&self) -> String {
        let schema: Value = serde_json::from_str(studies::SCHEMA).unwrap_or_default();
        let labs = crate::labs::LABS.map(|lab| lab.name);
        let observers: Vec<_> = wirelab_observe::OBSERVERS.iter().map(|about| about.name).collect();
        let any = wirelab_plan::builtin().first().and_then(|one| wirelab_plan::parse(one.text, one.name).ok());
        let metrics: Vec<_> = any.iter().flat_map(studies::metrics).map(|metric| metric.name).collect();
        json!({
            "schema": schema,
            "words": {
                "lab": labs, "observers": observers, "compare.metrics": metrics, "compare.primary": metrics,
                "claims.tests.metric": metrics,
            },
        })
        .to_string()
    }

    fn check(&self, draft: &Draft) -> Checked {
        let mistakes = |error: &StudyError| error.mistakes().map(mistake).collect();
        let study = match studies::parse(&draft.text, &draft.file) {
            Ok(study) => study,
            Err(error) => return Checked { mistakes: mistakes(&error), ..Checked::default() },
        };
        let presets = study.presets.keys().cloned().collect();
        let preset = Some(draft.preset.as_str()).filter(|preset| !preset.is_empty());
        let planned = wirelab_plan::resolve(study, preset, &[])
            .and_then(|study| studies::plan(&study).map(|plan| studies::size(&study, &plan)))
            .map_err(|error| error.located(&draft.text, &draft.file));
        match planned {
            Ok(size) => Checked { plan: Some(size.trim_end().to_owned()), presets, mistakes: Vec::new() },
            Err(error) => Checked { mistakes: mistakes(&error), presets, plan: None },
        }
    }

    fn save(&self, draft: &Draft, replace: bool) -> Result<Saved, LibraryError> {
        let path = self.file(&draft.file)?;
        if draft.text.len() > MAX_TEXT {
            return Err(wrong(format!("the text has {} bytes, and a study file at most {MAX_TEXT}", draft.text.len())));
        }
        match fs::symlink_metadata(&path) {
            Ok(facts) if !facts.is_file() => {
                Err(wrong(format!("{} exists and is no regular file; choose another name", draft.file)))
            }
            Ok(_) => match fs::read_to_string(&path).ok() {
                there if there.as_ref() == Some(&draft.text) => Ok(Saved::Written),
                there if replace || there.is_some() && there == draft.known => self.write(&path, &draft.text, true),
                _ => Ok(Saved::Exists),
            },
            Err(_) => self.write(&path, &draft.text, false),
        }
    }

    fn start(&self, order: &Order) -> Result<String, LibraryError> {
        if let Some(running) = self.runs.runs()?.iter().find(|entry| entry.progress.state == State::Running) {
            return Err(in_progress(&running.name));
        }
        let mut command = Command::new(program().map_err(|failure| refused(&failure))?);
        command.current_dir(&self.working);
        let what = match order {
            Order::Study { file, preset } => {
                let path = self.file(file)?;
                command.arg("run").arg(path).arg("--out").arg(&self.folder);
                if let Some(preset) = preset {
                    command.arg(format!("--preset={preset}"));
                }
                file
            }
            Order::Resume(run) => {
                command.arg("resume").arg(self.runs.path(run)?);
                run
            }
        };
        self.runner.start(command.arg("--quiet"), what)
    }

    fn stop(&self) -> Result<(), LibraryError> {
        self.runner.stop()
    }

    fn started(&self) -> Option<Started> {
        self.runner.started()
    }

    fn tag(&self, run: &str, tag: &str, remove: bool) -> Result<(), LibraryError> {
        let folder = self.runs.path(run)?;
        let change = if remove { tags::remove } else { tags::add };
        change(&folder, &[tag.to_owned()]).map(drop).map_err(wrong)
    }
}

fn mistake(error: &StudyError) -> Mistake {
    let (line, column) = error.position().unzip();
    Mistake { line, column, message: error.message().to_owned(), meant: error.suggestion().map(str::to_owned) }
}

/// The study of a run as a file. Claims, figures and published numbers may name levels that only another preset has;
/// then the copy has none of them.
fn copy(study: &Study, run: &str) -> Result<String, LibraryError> {
    let written = |study: &Study, more: &str| {
        let text = toml::to_string(study).map_err(|error| wrong(format!("cannot copy the study of {run}: {error}")))?;
        Ok(format!("# The study of the run {run}, with the preset and the settings of the run{more}.\n{text}"))
    };
    let whole = written(study, "")?;
    if studies::parse(&whole, run).is_ok() {
        return Ok(whole);
    }
    let bare = Study { claims: Vec::new(), figures: Vec::new(), published: Vec::new(), ..study.clone() };
    written(&bare, ",\n# without its claims, figures and published numbers, which name levels of other presets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_of_a_study_is_the_study_as_far_as_its_levels_go() {
        for builtin in wirelab_plan::builtin() {
            let study = wirelab_plan::parse(builtin.text, builtin.name).unwrap();
            let resolved = wirelab_plan::resolve(study, None, &[]).unwrap();
            let text = copy(&resolved, "run").unwrap();
            let read =
                studies::parse(&text, "copy").unwrap_or_else(|error| panic!("{}: {error}\n{text}", builtin.name));
            let read = wirelab_plan::resolve(read, None, &[]).unwrap();
            if text.contains("without its claims") {
                assert!(read.claims.is_empty() && !resolved.claims.is_empty(), "{}", builtin.name);
                assert_eq!((read.factors, read.workload), (resolved.factors, resolved.workload), "{}", builtin.name);
            } else {
                assert_eq!(read, resolved, "{}", builtin.name);
            }
        }
        let quick = wirelab_plan::find("quick").unwrap();
        let quick = wirelab_plan::parse(quick.text, quick.name).unwrap();
        assert!(!copy(&quick, "run").unwrap().contains("without its claims"));
    }

    fn desk() -> (tempfile::TempDir, Desk) {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk { working: folder.path().to_owned(), ..Desk::of(folder.path()).unwrap() };
        (folder, desk)
    }

    fn draft(file: &str, text: &str) -> Draft {
        Draft { file: file.to_owned(), text: text.to_owned(), ..Draft::default() }
    }

    #[test]
    fn no_name_leads_out_of_the_folder_and_no_file_is_replaced_unasked() {
        let (folder, desk) = desk();
        for name in
            ["", ".toml", "../a.toml", "/a.toml", "a/b.toml", "a.txt", "-a.toml", ".a.toml", "a\0.toml", "a .toml"]
        {
            assert!(desk.save(&draft(name, "x"), true).is_err(), "{name:?}");
            assert!(desk.open(&Source::File(name.to_owned())).is_err(), "{name:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(desk.save(&draft("a.toml", "one"), false).unwrap(), Saved::Written);
        assert_eq!(desk.save(&draft("a.toml", "one"), false).unwrap(), Saved::Written);
        assert_eq!(desk.save(&draft("a.toml", "two"), false).unwrap(), Saved::Exists);
        assert_eq!(fs::read_to_string(folder.path().join("a.toml")).unwrap(), "one");
        assert_eq!(desk.save(&draft("a.toml", "two"), true).unwrap(), Saved::Written);
        assert_eq!(fs::read_to_string(folder.path().join("a.toml")).unwrap(), "two");
        let known = |known: &str| Draft { known: Some(known.to_owned()), ..draft("a.toml", "three") };
        assert_eq!(desk.save(&known("one"), false).unwrap(), Saved::Exists, "another program has changed it");
        assert_eq!(desk.save(&known("two"), false).unwrap(), Saved::Written);
        assert_eq!(desk.open(&Source::File("a.toml".to_owned())).unwrap().known.as_deref(), Some("three"));
        assert!(desk.save(&draft("big.toml", &"x".repeat(MAX_TEXT + 1)), false).is_err());
    }

    #[test]
    fn a_link_to_another_folder_is_not_written_through() {
        let (folder, desk) = desk();
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("target.toml");
        fs::write(&target, "theirs").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("link.toml")).unwrap();
        assert!(desk.save(&draft("link.toml", "mine"), true).unwrap_err().to_string().contains("no regular file"));
        assert_eq!(fs::read_to_string(target).unwrap(), "theirs");
    }

    #[test]
    fn a_check_names_each_mistake_with_its_line_or_the_size_of_the_plan() {
        let (_folder, desk) = desk();
        let quick = desk.open(&Source::Builtin("quick".to_owned())).unwrap();
        let right = desk.check(&quick);
        assert!(right.mistakes.is_empty() && right.plan.unwrap().contains(" blocks."), "{:?}", right.mistakes);
        assert!(!right.presets.is_empty());
        let wrong = desk.check(&Draft { text: format!("titel = 1\n{}", quick.text), ..quick.clone() });
        assert_eq!((wrong.plan, wrong.mistakes.len()), (None, 1), "{:?}", wrong.mistakes);
        assert_eq!((wrong.mistakes[0].line, wrong.mistakes[0].meant.as_deref()), (Some(1), Some("title")));
        let absent = desk.check(&Draft { preset: "absent".to_owned(), ..quick });
        assert!(absent.mistakes[0].message.contains("absent") && !absent.presets.is_empty(), "{:?}", absent.mistakes);
    }

    #[test]
    fn study_files_are_listed_and_other_files_are_not() {
        let (folder, desk) = desk();
        fs::write(folder.path().join("my.toml"), "[factors]\n").unwrap();
        fs::write(folder.path().join("Cargo.toml"), "[package]\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "[factors]\n").unwrap();
        let sources = desk.sources().unwrap();
        assert_eq!(sources.files, ["my.toml"]);
        assert!(sources.builtin.iter().any(|(name, _)| name == "quick"));
    }
}
