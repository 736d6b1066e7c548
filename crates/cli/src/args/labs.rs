//! What labs there are.

use clap::{Args, Subcommand};

/// Arguments of `labs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab labs                                  the list
  wirelab labs measure                          every link that has a name
  wirelab labs measure --set placement=home --set bandwidth='10 Mbit/s,50 Mbit/s'
  wirelab labs measure conditions               the links of a study
  wirelab labs rbac | kubectl apply -f -        the rights that the lab kubernetes needs
  wirelab labs clean --dry-run                  what killed runs left in the cluster")]
pub struct LabsArgs {
    /// The command; default: list
    #[command(subcommand)]
    pub command: Option<LabsCommand>,
    /// Print as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `labs`.
#[derive(Debug, Subcommand)]
pub enum LabsCommand {
    /// Measure the links of the lab netns on this machine: round trip, rate, loss, MTU. Exit status 1 if one is out of
    /// tolerance
    Measure {
        /// A built-in study or the path of a study file, for its links; default: every link with a name
        study: Option<String>,
        /// Replace the levels of a factor, or fix a setting; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE[,VALUE]")]
        sets: Vec<String>,
        /// The number of measurements of each link
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        times: u32,
    },
    /// Remove what killed runs left in the cluster of the kubeconfig: namespaces with wirelab's labels that no run uses
    Clean {
        /// List them without removing them
        #[arg(long)]
        dry_run: bool,
        /// Remove the namespaces of other machines, too; wirelab cannot see here whether their runs go on
        #[arg(long)]
        other_machines: bool,
    },
    /// Print exactly the rights that the lab kubernetes needs, as a ClusterRole in YAML
    Rbac,
}
