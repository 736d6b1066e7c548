//! The builds of a bisection: a list, or the commits of a git range.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::args::AbArgs;
use crate::commands::ab::bisect::tree::{self, Commit, Forest, Tree};
use crate::commands::ab::bisect::unusable::Unusable;
use crate::commands::ab::build::Build;
use crate::failure::{Failure, Result};

/// Placeholder of `--start` for the folder of a commit.
const TREE: &str = "{tree}";

/// Builds in the order of time.
pub(super) enum Builds {
    List(Vec<Build>),
    Git { commits: Vec<Commit>, recipe: Recipe, forest: Forest, trees: BTreeMap<usize, Tree> },
}

/// How a commit becomes a build.
pub(super) struct Recipe {
    build: String,
    start: String,
    stop: Arc<AtomicBool>,
}

impl Builds {
    pub(super) fn read(args: &AbArgs, stop: Arc<AtomicBool>) -> Result<Self> {
        match (&args.build, &args.start, &args.base, &args.head) {
            (Some(build), Some(start), None, None) => {
                let [range] = &args.bisect[..] else {
                    return Err(Failure::input("--bisect is one range of git with --build, GOOD..BAD"));
                };
                if !start.contains(TREE) {
                    return Err(Failure::input(format!(
                        "--start '{start}' would start the same program for each commit; `{TREE}` stands for the folder of \
                         the commit, as in '{TREE}/server --port {{port}}'"
                    )));
                }
                let recipe = Recipe { build: build.clone(), start: start.clone(), stop };
                Ok(Self::Git { commits: tree::commits(range)?, recipe, forest: Forest::new()?, trees: BTreeMap::new() })
            }
            (None, None, Some(base), Some(head)) => {
                let between = args.bisect.iter().map(|build| Build::read("--bisect", build));
                let mut builds = vec![Build::read("--base", base)?];
                builds.extend(between.collect::<Result<Vec<_>>>()?);
                builds.push(Build::read("--head", head)?);
                Ok(Self::List(builds))
            }
            _ => Err(Failure::input(
                "--bisect needs either --build and --start, for a range of git, or --base and --head, with a build between \
                 them for each --bisect",
            )),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(builds) => builds.len(),
            Self::Git { commits, .. } => commits.len(),
        }
    }

    /// The name of a build, for people.
    pub(super) fn name(&self, number: usize) -> String {
        match self {
            Self::List(builds) => builds[number].to_string(),
            Self::Git { commits, .. } => commits[number].title.clone(),
        }
    }

    /// A build, made now if it must be. `Err` within has the reason why it cannot be made.
    ///
    /// # Errors
    /// If git or the shell fails, or Ctrl-C was pressed.
    pub(super) fn get(&mut self, number: usize) -> Result<std::result::Result<Build, Unusable>> {
        let (commits, recipe, forest, trees) = match self {
            Self::List(builds) => return Ok(Ok(builds[number].clone())),
            Self::Git { commits, recipe, forest, trees } => (commits, recipe, forest, trees),
        };
        let tree = match trees.entry(number) {
            Entry::Occupied(tree) => tree.into_mut(),
            Entry::Vacant(place) => match forest.build(&commits[number], &recipe.build, &recipe.stop)? {
                Ok(tree) => place.insert(tree),
                Err(error) => return Ok(Err(error.into())),
            },
        };
        Ok(recipe.of(tree.place()).map_err(Unusable::NotStarted))
    }

    /// Removes the working trees of all other builds.
    pub(super) fn keep(&mut self, wanted: &[usize]) {
        if let Self::Git { trees, .. } = self {
            trees.retain(|number, _| wanted.contains(number));
        }
    }
}

impl Recipe {
    fn of(&self, tree: &Path) -> Result<Build> {
        Build::read("--start", &self.start.replace(TREE, &tree.to_string_lossy()))
    }
}
