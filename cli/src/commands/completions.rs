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
`vm-system completions fish | source` in ~/.config/fish/config.fish. \
Or write the output to a file where the shell looks for it: ~/.local/share/bash-completion/completions/vm-system, _vm-system in \
a folder of zsh's $fpath, ~/.config/fish/completions/vm-system.fish. Ids and names come from the daemon while you type.")]
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

/// Where no option begins, bash gets none: else it would complete no files.
const WITHOUT_OPTIONS: &str = r#"    elif [[ "$2" != -* ]]; then
        local word words_only=()
        for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do
            [[ "$word" == -* ]] || words_only+=("$word")
        done
        COMPREPLY=(${words_only[@]+"${words_only[@]}"})
        if [[ $_CLAP_COMPLETE_SPACE == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
            compopt -o nospace
        fi
"#;

/// The script, with the shell's own completion of files where this binary has no candidates.
fn with_files(shell: &str, script: &str) -> String {
    match shell {
        "bash" => script.replace("-o bashdefault", "-o bashdefault -o default").replacen(
            "    if [[ $? != 0 ]]; then\n        unset COMPREPLY\n",
            &format!("    if [[ $? != 0 ]]; then\n        unset COMPREPLY\n{WITHOUT_OPTIONS}"),
            1,
        ),
        "zsh" => script.replace("    fi\n}\n", "    else\n        _files\n    fi\n}\n"),
        "fish" => script.replace("--exclusive ", ""),
        _ => script.to_owned(),
    }
}
