//! The configuration file: options of the service as TOML. Its values replace the options' defaults. So there is only
//! one list of options, and the command line and the environment have precedence.

use std::any::TypeId;
use std::error::Error;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, Command};
use toml::{Table, Value};

use super::{Failure, Refusal, environment};
use crate::config::{DATABASE, Size};

/// The file that is read by default, if it exists.
const DEFAULT_FILE: &str = "hotline.toml";

/// The commands that run the service. The keys of the file are the options of the first.
const SERVICE_COMMANDS: &[&str] = &["serve", "demo"];

/// Other commands whose options have the names and the meaning of the service's. All further commands take only the
/// options of the database from the file.
const COMMANDS_WITH_SERVICE_OPTIONS: &[&str] = &["backup", "restore", "check", "doctor"];

/// Options whose environment variable counts as unset if it is empty. A Compose file sets a variable without a value to
/// the empty string.
const EMPTY_IS_UNSET: [&str; 2] = ["database-url", "smtp-url"];

/// The values that the file, or a variable in an old spelling, sets for an option, written as on the command line.
struct OptionDefault {
    long: String,
    values: Vec<String>,
}

/// Makes the values in the file, and those of variables in old spellings, the options' defaults. These variables
/// override the file.
///
/// # Errors
/// When the file cannot be read or is not TOML, or a key or a value is refused.
pub fn apply(command: Command, explicit_path: Option<&Path>) -> Result<Command, Failure> {
    let mut defaults = read_defaults(&command, explicit_path)?;
    let service = SERVICE_COMMANDS.first().and_then(|name| command.find_subcommand(name));
    let old_values = service.map(|service| environment::old_values(service, |name| std::env::var(name).ok()));
    for (long, value) in old_values.unwrap_or_default() {
        defaults.retain(|default| default.long != long);
        defaults.push(OptionDefault { long, values: vec![value] });
    }
    let command = command.mut_args(without_empty_variable);
    let command = command.mut_subcommands(|subcommand| subcommand.mut_args(without_empty_variable));
    Ok(with_defaults(command, &defaults))
}

/// Ignores the option's variable if it is empty: it would override the file.
fn without_empty_variable(option: Arg) -> Arg {
    let may_be_empty = option.get_long().is_some_and(|long| EMPTY_IS_UNSET.contains(&long));
    let value = option.get_env().filter(|_| may_be_empty).and_then(std::env::var_os);
    match value {
        Some(value) if value.to_string_lossy().trim().is_empty() => option.env(None::<&'static str>),
        _ => option,
    }
}

/// The options that the file sets.
///
/// # Errors
/// As [`apply`].
pub fn options_in_file(command: &Command, explicit_path: Option<&Path>) -> Result<Vec<String>, Failure> {
    Ok(read_defaults(command, explicit_path)?.into_iter().map(|default| default.long).collect())
}

fn read_defaults(command: &Command, explicit_path: Option<&Path>) -> Result<Vec<OptionDefault>, Failure> {
    let path = explicit_path.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_owned);
    let text = match read_file(&path, explicit_path.is_none()) {
        Err(error) if error.kind() == ErrorKind::NotFound && explicit_path.is_none() => return Ok(Vec::new()),
        result => result.map_err(|error| refusal(&path, &error))?,
    };
    Ok(parse(command, &text).map_err(|reason| refusal(&path, &reason))?)
}

fn refusal(path: &Path, reason: &dyn std::fmt::Display) -> Refusal {
    Refusal::configuration(format!("{}: {reason}", path.display()))
}

/// Reads the file. A file found by default is read only if it belongs to this user or root: in a folder such as `/tmp`
/// it may belong to anyone, who could then choose the database and the provider of this process. A file named
/// explicitly is always read.
fn read_file(path: &Path, is_default: bool) -> io::Result<String> {
    let mut file = File::open(path)?;
    if is_default {
        let link = path.symlink_metadata()?;
        refuse_foreign_file(&link, &file.metadata()?)
            .map_err(|reason| io::Error::other(format!("{reason}; name it with --config to use it anyway")))?;
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Refuses a file, or a link to it, that another user owns, and a file that another user can write.
fn refuse_foreign_file(link: &Metadata, file: &Metadata) -> Result<(), String> {
    let (own, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    if let Some(foreign_owner) =
        [link, file].iter().map(|metadata| metadata.uid()).find(|owner| ![0, own].contains(owner))
    {
        return Err(format!("belongs to user {foreign_owner}, not to this user ({own}) or root"));
    }
    // On most systems each user has their own group, with write permission.
    let foreign_write_bits = if [0, group].contains(&file.gid()) { 0o002 } else { 0o022 };
    if file.mode() & foreign_write_bits != 0 {
        return Err(format!("is writable by other users (mode {:04o})", file.mode() & 0o7777));
    }
    Ok(())
}

/// Parses the text of the file.
fn parse(command: &Command, text: &str) -> Result<Vec<OptionDefault>, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        // The error's own display shows the line, which may contain a password.
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })?;
    let mut defaults: Vec<OptionDefault> = Vec::new();
    for (key, value) in &table {
        let option = find_option(command, &key.replace('_', "-")).ok_or_else(|| format!("unknown key `{key}`"))?;
        let long = option.get_long().unwrap_or_default().to_owned();
        if defaults.iter().any(|default| default.long == long) {
            return Err(format!("`{key}` is given twice"));
        }
        let values = argument_values(option, value).map_err(|reason| format!("`{key}` {reason}"))?;
        defaults.push(OptionDefault { long, values });
    }
    Ok(defaults)
}

/// The option of the database or of the service with this name, which may be an old spelling.
fn find_option<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    let database_options = command.get_arguments().filter(|option| is_database_option(option));
    let service_options = command.find_subcommand(SERVICE_COMMANDS[0])?.get_arguments();
    let is_named = |option: &&Arg| {
        option.get_long() == Some(long) || option.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
    };
    database_options.chain(service_options).find(is_named)
}

/// Whether this is an option of the database, which every command has.
pub(super) fn is_database_option(option: &Arg) -> bool {
    option.get_help_heading() == Some(DATABASE)
}

/// The value of a key as on the command line; a list has several.
fn argument_values(option: &Arg, value: &Value) -> Result<Vec<String>, String> {
    let values = match (value, option.get_action()) {
        (Value::Array(values), ArgAction::Append) => values.iter().map(|value| argument_value(option, value)).collect(),
        (_, ArgAction::Append) => Err("must be a list".to_owned()),
        (value, _) => argument_value(option, value).map(|text| vec![text]),
    }?;
    let long = option.get_long().unwrap_or_default();
    // The option's own parser checks the values here as well, so that an error can name the key.
    Command::new("hotline")
        .no_binary_name(true)
        .arg(option.clone())
        .try_get_matches_from(values.iter().map(|value| format!("--{long}={value}")))
        .map_err(|error| invalid_value_reason(&error))?;
    Ok(values)
}

fn argument_value(option: &Arg, value: &Value) -> Result<String, String> {
    let type_id = option.get_value_parser().type_id();
    let is_number = [TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<i64>()].iter().any(|id| type_id == *id);
    let has_unit = type_id == TypeId::of::<Duration>() || type_id == TypeId::of::<Size>();
    match value {
        Value::Boolean(flag) if type_id == TypeId::of::<bool>() => Ok(flag.to_string()),
        // A number without a unit gets the unit of the option's old name, for example seconds for `idle_after_s`.
        Value::Integer(number) if is_number || has_unit => Ok(number.to_string()),
        Value::String(text) if !is_number && type_id != TypeId::of::<bool>() => Ok(text.clone()),
        _ if type_id == TypeId::of::<bool>() => Err("must be true or false".to_owned()),
        _ if is_number => Err("must be a whole number".to_owned()),
        _ if has_unit => Err("must be a string with a unit".to_owned()),
        _ => Err("must be a string".to_owned()),
    }
}

fn invalid_value_reason(error: &clap::Error) -> String {
    let message = error.source().map_or_else(|| error.kind().to_string(), ToString::to_string);
    format!("is invalid: {message}")
}

fn with_defaults(command: Command, defaults: &[OptionDefault]) -> Command {
    let command =
        command.mut_args(|option| if is_database_option(&option) { with_default(option, defaults) } else { option });
    command.mut_subcommands(|subcommand| {
        // `company update` has its own options with the same names.
        let has_service_options =
            [SERVICE_COMMANDS, COMMANDS_WITH_SERVICE_OPTIONS].concat().contains(&subcommand.get_name());
        subcommand.mut_args(|option| if has_service_options { with_default(option, defaults) } else { option })
    })
}

fn with_default(option: Arg, defaults: &[OptionDefault]) -> Arg {
    match defaults.iter().find(|default| option.get_long() == Some(default.long.as_str())) {
        Some(default) => option.default_values(default.values.clone()),
        None => option,
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::cli::{Cli, Command as CliCommand};
    use crate::config::{DatabaseArgs, ServeArgs};

    /// The arguments of `serve` with this file and these further arguments.
    fn parse_serve(text: &str, arguments: &[&str]) -> (ServeArgs, DatabaseArgs) {
        let command = crate::cli::command();
        let defaults = parse(&command, text).expect("a valid file");
        let matches = with_defaults(command, &defaults).get_matches_from([&["hotline", "serve"], arguments].concat());
        let cli = Cli::from_arg_matches(&matches).expect("a valid command line");
        match cli.command {
            CliCommand::Serve(args) => (args, cli.global.database),
            _ => unreachable!("the command is serve"),
        }
    }

    #[test]
    fn every_option_of_the_service_is_a_key_and_the_command_line_wins() {
        let text = r#"
            data_dir = "/srv/hotline"
            database-url = "postgres:///hotline"
            key_file = "/etc/hotline/secrets.key"
            pg_bin = "/usr/bin"
            listen = "127.0.0.1:1"
            durability = "database"
            on_premise = true
            journal_max_size = "1MiB"
            journal_segment_size = "2KiB"
            idle_after = "3s"
            session_idle_after = "4s"
            conversation_window = 0
            trusted_proxy = ["10.0.0.0/8", "::1"]
            max_connections_per_address = 17
            rate_per_minute = 5
            max_page_size = 6
            visitor_sessions_per_minute = 7
            visitor_messages_per_minute = 8
            visitor_requests_per_minute = 9
            visitor_sockets_per_address = 10
            visitor_session_bytes_per_hour = "11MiB"
            visitor_address_bytes_per_hour = "12MiB"
            visitor_company_bytes_per_hour = "13MiB"
            invalid_tokens_per_minute = 14
            min_free_space = "15MiB"
            fetch_allow_network = ["10.1.0.0/16", "10.2.0.1"]
            webhook_allow_network = ["10.3.0.0/16"]
            events = false
            event_retention = "17d"
            metrics_listen = "127.0.0.1:2"
            smtp_url = "smtp://127.0.0.1:3"
            mail_from = "Acme <desk@acme.example>"
            require_admin_second_factor = true
            cluster_listen = "10.0.0.1:7400"
            cluster_address = "node-1.internal:7400"
            cluster_node = "node-1"
            start_wait = "10s"
            stop_notice = "9s"
            migrate = false
            migration_wait = "11s"
            media_max_size = "7B"
            media_fetch_max_size = "9B"
            media_store = "s3://files/hotline"
            media_link_ttl = "8s"
            public_url = "https://support.example"
            provider_url = "https://provider.example/graph/"
            provider_version = "v24.0"
            provider_timeout = "9s"
            sends_per_second = 10
            recipient_interval = "11ms"
            recipient_burst = 12
            max_sends_in_flight = 13
            send_retry_delay = "14ms"
            send_retry_max_delay = "15ms"
            send_give_up_after = "16s"
            log = "json"
            log_filter = "info,hotline=debug"
            otlp_endpoint = "http://127.0.0.1:4318/v1/traces"
        "#;
        let (args, database) =
            parse_serve(text, &["--listen", "127.0.0.1:3", "--rate-per-minute=0", "--on-premise=false"]);
        assert_eq!(args.logs.otlp_endpoint.as_ref().map(url::Url::as_str), Some("http://127.0.0.1:4318/v1/traces"));
        let settings = args.settings(&database).expect("settings");
        let cluster = settings.cluster.as_ref().expect("a cluster member");
        assert_eq!((cluster.address.as_str(), cluster.node.as_str()), ("node-1.internal:7400", "node-1"));
        assert_eq!(settings.start.wait.as_secs(), 10);
        assert_eq!(settings.stop.notice.as_secs(), 9);
        assert_eq!((settings.start.migration.is_enabled, settings.start.migration.wait.as_secs()), (false, 11));
        assert_eq!(settings.listen, "127.0.0.1:3".parse().expect("address"));
        assert_eq!((settings.rate_per_minute, settings.per_page_max, settings.on_premise), (0, 6, false));
        let visitors = settings.visitors;
        assert_eq!((visitors.sessions_per_minute, visitors.messages_per_minute), (7, 8));
        assert_eq!((visitors.requests_per_minute, visitors.sockets_per_address), (9, 10));
        let uploads = visitors.uploads;
        let per_hour = [uploads.session_mib_per_hour, uploads.address_mib_per_hour, uploads.company_mib_per_hour];
        assert_eq!((per_hour, settings.wrong_tokens_per_minute), ([11, 12, 13], 14));
        assert_eq!((settings.media.free_bytes_min, &settings.media.watched[0]), (15 << 20, &settings.data_dir));
        assert_eq!((settings.outbound.allowed_networks.len(), settings.webhooks.allowed_networks.len()), (2, 1));
        assert_eq!((settings.events.enabled, settings.events.retention_days), (false, 17));
        assert_eq!((settings.trusted_proxies.len(), settings.limits.per_address), (2, 17));
        assert_eq!(settings.engine.conversation_window, None, "zero hours disable the window");
        assert_eq!(settings.metrics_listen, "127.0.0.1:2".parse().ok());
        assert_eq!(settings.data_dir, Path::new("/srv/hotline"));
        assert_eq!(settings.key_file, Path::new("/etc/hotline/secrets.key"));
        assert_eq!(settings.media.folder, Path::new("/srv/hotline/media"));
        assert_eq!(settings.media.store, "s3://files/hotline".parse().ok());
        assert_eq!((settings.media.bytes_max, settings.media.link_valid_for.as_secs()), (7, 8));
        assert_eq!(settings.media.fetched_bytes_max, 9);
        assert_eq!(settings.media.public_url.as_deref(), Some("https://support.example"));
        assert_eq!(settings.provider.url, "https://provider.example/graph");
        assert_eq!((settings.provider.version.as_str(), settings.provider.call_time_max.as_secs()), ("v24.0", 9));
        let sending = &settings.engine.sending;
        assert_eq!((sending.per_second, sending.recipient_burst, sending.in_flight_max), (10, 12, 13));
        let times = [sending.recipient_interval, sending.retry_pause_min, sending.retry_pause_max];
        assert_eq!(times.map(|time| time.as_millis()), [11, 14, 15]);
        assert_eq!(sending.give_up_after.as_secs(), 16);
        assert!(settings.database.is_some());
        // A shared folder, instead of the bucket above.
        let settings = |text: &str, arguments: &[&str]| {
            let (args, database) = parse_serve(text, arguments);
            args.settings(&database)
        };
        let shared = settings("media_shared = \"/mnt/files\"", &[]).expect("settings");
        assert_eq!(shared.media.folder, Path::new("/mnt/files"));
        let both = settings("media_shared = \"/mnt/files\"", &["--media-store", "s3://files/hotline"]);
        assert!(
            both.is_err_and(|message| message.contains("--media-shared and --media-store")),
            "a folder and a bucket exclude each other"
        );
        // The text above has every option, except those that exclude one of its options.
        const EXCLUDED: [&str; 3] = ["media-shared", "postgres-memory", "postgres-disk"];
        let command = crate::cli::command();
        let serve = command.find_subcommand("serve").expect("serve");
        let database_options = command.get_arguments().filter(|option| is_database_option(option));
        for option in database_options.chain(serve.get_arguments()).filter(|option| !option.is_hide_set()) {
            let long = option.get_long().expect("options have names");
            let is_tested = text.contains(&long.replace('-', "_")) || text.contains(long) || EXCLUDED.contains(&long);
            assert!(is_tested, "{long} is not tested here");
            assert!(option.get_env().is_some(), "{long} has no environment variable");
        }
    }

    /// The settings as text, for comparison.
    fn settings_text(text: &str, arguments: &[&str]) -> String {
        let (args, database) = parse_serve(text, arguments);
        let settings = args.settings(&database).expect("settings");
        format!("{args:?} {:?} {:?}", settings.events.enabled, settings.events.retention_days)
    }

    #[test]
    fn old_spellings_are_read_with_their_units() {
        let mut tested = vec!["no-events"];
        for (old, value, new) in [
            ("trusted-proxies", "10.0.0.0/8", "--trusted-proxy=10.0.0.0/8"),
            ("connections-per-address", "7", "--max-connections-per-address=7"),
            ("journal-max-mib", "1024", "--journal-max-size=1GiB"),
            ("journal-segment-kib", "1024", "--journal-segment-size=1MiB"),
            ("idle-after-s", "60", "--idle-after=1m"),
            ("per-page-max", "7", "--max-page-size=7"),
            ("wrong-tokens-per-minute", "7", "--invalid-tokens-per-minute=7"),
            ("session-idle-after-s", "7200", "--session-idle-after=2h"),
            ("visitor-session-mib-per-hour", "7", "--visitor-session-bytes-per-hour=7MiB"),
            ("visitor-address-mib-per-hour", "7", "--visitor-address-bytes-per-hour=7MiB"),
            ("visitor-company-mib-per-hour", "2048", "--visitor-company-bytes-per-hour=2GiB"),
            ("events-kept-for-days", "7", "--event-retention=7d"),
            ("media-bytes-max", "1048576", "--media-max-size=1MiB"),
            ("media-link-valid-for-s", "3600", "--media-link-ttl=1h"),
            ("free-mib-min", "2048", "--min-free-space=2GiB"),
            ("provider-timeout-s", "7", "--provider-timeout=7s"),
            ("conversation-window-hours", "48", "--conversation-window=2d"),
            ("recipient-interval-ms", "700", "--recipient-interval=700ms"),
            ("sends-in-flight-max", "7", "--max-sends-in-flight=7"),
            ("send-retry-ms", "2000", "--send-retry-delay=2s"),
            ("send-retry-max-ms", "120000", "--send-retry-max-delay=2m"),
            ("send-give-up-after-s", "7200", "--send-give-up-after=2h"),
            ("cluster-notice", "7s", "--stop-notice=7s"),
            ("cluster-notice-s", "7", "--stop-notice=7s"),
        ] {
            let expected = settings_text("", &[new]);
            assert_ne!(expected, settings_text("", &[]), "{old}: {value} is the default");
            let key = old.replace('-', "_");
            let in_file = match old {
                "trusted-proxies" => format!("[\"{value}\"]"),
                // The only old spelling whose value has a unit.
                "cluster-notice" => format!("\"{value}\""),
                _ => value.to_owned(),
            };
            assert_eq!(settings_text("", &[&format!("--{old}={value}")]), expected, "{old}");
            assert_eq!(settings_text(&format!("{key} = {in_file}"), &[]), expected, "{key}");
            let command = crate::cli::command();
            let serve = command.find_subcommand("serve").expect("serve");
            let name = format!("HOTLINE_{}", key.to_uppercase());
            let by_variable = environment::old_values(serve, |variable| (variable == name).then(|| value.to_owned()));
            let (long, new_value) = new.trim_start_matches("--").split_once('=').expect("a value");
            assert_eq!(by_variable, [(long.to_owned(), value.to_owned())], "{name}, for {new_value}");
            tested.push(old);
        }
        for no_events in [settings_text("no_events = true", &[]), settings_text("", &["--no-events"])] {
            assert!(no_events.ends_with("false 30"), "events are enabled, or kept for other than 30 days: {no_events}");
        }
        let command = crate::cli::command();
        let serve = command.find_subcommand("serve").expect("serve");
        let aliases = serve.get_arguments().flat_map(|option| option.get_all_aliases().unwrap_or_default());
        let hidden = serve.get_arguments().filter(|option| option.is_hide_set()).filter_map(Arg::get_long);
        for old in aliases.chain(hidden) {
            assert!(tested.contains(&old), "{old} is not tested here");
        }
    }

    #[test]
    fn an_error_names_its_key() {
        for (text, message) in [
            ("lissten = \"x\"", "`lissten`"),
            ("listen = 8080", "`listen` must be a string"),
            ("listen = \"nowhere\"", "`listen` is invalid"),
            ("on_premise = \"yes\"", "`on_premise` must be true or false"),
            ("per_page_max = 0", "`per_page_max` is invalid"),
            ("media_max_size = 0", "`media_max_size` is invalid"),
            ("media_max_size = \"16 MB\"", "`media_max_size` is invalid"),
            ("idle_after = true", "`idle_after` must be a string"),
            ("idle_after = \"5m\"\nidle_after_s = 300", "twice"),
            ("media_store = \"/srv/files\"", "s3://bucket"),
            ("public_url = \"https://support.example/hotline\"", "`public_url` is invalid"),
            ("rate_per_minute = -1", "`rate_per_minute` is invalid"),
            ("rate_per_minute = \"1\"", "`rate_per_minute` must be a whole number"),
            ("trusted_proxies = \"10.0.0.1\"", "`trusted_proxies` must be a list"),
            ("trusted_proxies = [\"10.0.0.1\", \"here\"]", "`here` is not an IP address or range"),
            ("log = \"loud\"", "must be pretty or json"),
            ("data_dir = \"a\"\ndata-dir = \"b\"", "twice"),
            ("[serve]\nlisten = \"127.0.0.1:1\"", "`serve`"),
            ("config = \"other.toml\"", "`config`"),
            ("listen = \"127.0.0.1:1\"\nlog = \"secret", "line 2"),
        ] {
            let error = parse(&crate::cli::command(), text).err().unwrap_or_else(|| panic!("accepted: {text}"));
            assert!(error.contains(message), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_the_keys_of_the_database_reach_the_other_commands() {
        let command = crate::cli::command();
        let defaults = parse(&command, "rate_per_minute = 7\ndata_dir = \"/srv\"").expect("a valid file");
        let update = ["hotline", "company", "update", "1", "--active=false"];
        let matches = with_defaults(command, &defaults).get_matches_from(update);
        let update = matches.subcommand_matches("company").and_then(|matches| matches.subcommand_matches("update"));
        let update = update.expect("update");
        assert_eq!(update.get_one::<i32>("rate_per_minute"), None);
        assert_eq!(update.get_one::<PathBuf>("data_dir").map(PathBuf::as_path), Some(Path::new("/srv")));
    }
}
