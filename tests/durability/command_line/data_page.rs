//! The commands of `docs/operate/data.md`, in the order of the page: a lost key, a lost administrator, a person who is
//! erased, and a company that moves.

use std::path::Path;

use serde_json::{Value, json};

use super::json as run_json;
use super::secrets::create_channels;
use crate::process::{Process, data_folder, hotline};
use crate::support::template::prepared_folder;
use crate::support::{Api, Provider, eventually};

/// The commands of the page, one on each line.
fn commands() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate/data.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let lines = blocks.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Runs a command as it is written, in the folder `place` and on the data folder `data`; returns what it printed.
fn run_line(place: &Path, data: &Path, line: &str) -> Value {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("hotline"), "{line}");
    let mut command = hotline();
    command.args(words).arg("--json").current_dir(place).env("HOTLINE_DATA_DIR", data);
    let output = command.stdin(std::process::Stdio::null()).output().expect("hotline runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line} printed no JSON: {error}"))
}

fn stop(mut process: Process) {
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
}

/// An installation with the records that the page is about, and without its key.
struct Installation {
    folder: tempfile::TempDir,
    company: String,
    token: String,
    key_id: String,
}

impl Installation {
    async fn without_its_key() -> Self {
        let folder = prepared_folder();
        let path = folder.path();
        let provider = Provider::start().await;
        let company = run_json(path, &["company", "create", "Acme"])["id"].to_string();
        create_channels(path, &company, &provider.url);
        let token = run_json(path, &["token", "create", "crm", "--company", &company, "--all"])["key"].clone();
        let key_id = run_json(path, &["secret", "list"])["keys"][0]["id"].as_str().expect("id").to_owned();
        std::fs::remove_file(path.join("secrets.key")).expect("lost");
        Self { company, token: token.as_str().expect("key").to_owned(), key_id, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

#[actix_web::test]
async fn the_commands_of_the_page_do_what_it_says_in_its_order() {
    let (here, there, place) = (Installation::without_its_key().await, prepared_folder(), data_folder());
    let process = Process::serve(here.path());
    let api = Api::new(process.address, &here.token);
    let is_seen = || async { api.get("/channels").await.status == 200 };
    eventually("the company is seen", is_seen).await;
    let person = json!({"name": "Zelda", "number": "5511900000001"});
    let person = api.post("/contacts", person).await.data(201)["id"].clone();
    let other = json!({"name": "Maria", "number": "5511900000002"});
    let other = api.post("/contacts", other).await.data(201)["id"].clone();

    let mut run = Vec::new();
    let mut process = Some(process);
    for line in commands() {
        let line = line.replace(" KEY ", &format!(" {} ", here.key_id));
        let line = line.replace("--company ID", &format!("--company {}", here.company));
        let line = line.replace("erase ID", &format!("erase {person}"));
        let line = line.replace("company update ID", &format!("company update {}", here.company));
        let name = line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
        let is_import = name.starts_with("import");
        if is_import && let Some(process) = process.take() {
            stop(process);
        }
        let data = if is_import { there.path() } else { here.path() };
        let shown = run_line(place.path(), data, &line);
        match name.as_str() {
            "secret list" => assert_eq!(shown["keys"][0]["inFile"], false, "{shown}"),
            "secret abandon" => {
                assert_eq!(shown["id"], json!(here.key_id), "{shown}");
                let left = run_json(here.path(), &["secret", "list"]);
                assert!(!left.to_string().contains(&here.key_id), "{left}");
            }
            "admin create" => assert_eq!(shown["email"], "ana@example.com", "{shown}"),
            "admin reset-password" => assert!(shown["password"].is_string(), "{shown}"),
            "contact erase" => {
                assert_eq!((&shown["contactId"], &shown["existed"]), (&person, &json!(true)), "{shown}");
                api.get(&format!("/contacts/{person}")).await.error(404, "ERR_API_NOT_FOUND");
                api.get(&format!("/contacts/{other}")).await.data(200);
            }
            "company update" => assert_eq!(shown["active"], false, "{shown}"),
            "export acme" => assert!(place.path().join("acme/manifest.json").is_file(), "{shown}"),
            "import acme" => assert_eq!(shown["exportedFrom"].to_string(), here.company, "{shown}"),
            _ => panic!("the test does not know what `{line}` should do"),
        }
        run.push(name);
    }
    assert_eq!(run.len(), 8, "{run:?}");

    // The company was exported inactive; activated, it is served by the other installation.
    let company = run_json(there.path(), &["company", "list"])["companies"][0]["id"].to_string();
    run_json(there.path(), &["company", "update", &company, "--active=true"]);
    let token = run_json(there.path(), &["token", "create", "crm", "--company", &company, "--all"])["key"].clone();
    let process = Process::serve(there.path());
    let api = Api::new(process.address, token.as_str().expect("key"));
    eventually("the company is seen", || async { api.get("/contacts").await.status == 200 }).await;
    let names: Vec<Value> = api.all("/contacts").await.into_iter().map(|contact| contact["name"].clone()).collect();
    assert_eq!(names, [json!("Maria")]);
    stop(process);
}
