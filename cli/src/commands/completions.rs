//! `completions SHELL`

use crate::complete;
use crate::context::Context;
use crate::error::{CliError, exit};
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For bash: `source <(vm-system completions bash)` in ~/.bashrc. For zsh: the same with zsh in ~/.zshrc. For fish: \
`vm-system completions fish | source` in ~/.config/fish/config.fish. Ids and names come from the daemon while you type.")]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<u8, CliError> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or_else(|| CliError::usage("no such shell"))?;
    let mut script = Vec::new();
    shell
        .write_registration(complete::VARIABLE, "vm-system", "vm-system", "vm-system", &mut script)
        .map_err(|error| CliError::output(&error))?;
    context.out.write(&with_files(&args.shell, &String::from_utf8_lossy(&script)))?;
    Ok(exit::OK)
}

/// The script, with the shell's own completion of files where this binary has no candidates.
fn with_files(shell: &str, script: &str) -> String {
    match shell {
        "bash" => script.replace("-o bashdefault", "-o bashdefault -o default"),
        "zsh" => script.replace("    fi\n}\n", "    else\n        _files\n    fi\n}\n"),
        "fish" => script.replace("--exclusive ", ""),
        _ => script.to_owned(),
    }
}
