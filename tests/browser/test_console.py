"""The console in a real browser: every page opens, nothing violates its policy, a secret is seen once."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response

from octavo_stack import Stack

OPERATOR = "olga"
NUM_PAGES = 12
"""At least so many: the navigation's and one to add for each."""
PAGE_CEILING_MS = 60_000
"""The first page of a new browser on a busy machine takes its time."""


class Watched:
    """A page and everything the browser complained about while it was used."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"pageerror: {error}"))
        page.on("response", self._note_response)

    def _note(self, kind: str, text: str) -> None:
        """Violations of the content policy are errors on the console, too."""
        if kind in {"error", "warning"}:
            self.complaints.append(f"{self.page.url}: {kind}: {text}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")


@pytest.fixture
def watched(browser: Browser, console: Stack) -> Iterator[Watched]:
    context = browser.new_context(base_url=console.base_url)
    context.set_default_timeout(PAGE_CEILING_MS)
    yield Watched(context.new_page())
    context.close()


@pytest.fixture
def olga(watched: Watched, console: Stack) -> Watched:
    """Logged in."""
    page = watched.page
    page.goto("/admin/")
    page.fill("input[name=username]", OPERATOR)
    page.fill("input[name=password]", console.keys[OPERATOR])
    page.click("button[type=submit]")
    page.wait_for_url(lambda url: "/admin/login/" not in url)
    return watched


def links(page: Page) -> set[str]:
    found = page.eval_on_selector_all("a[href]", "links => links.map(link => link.getAttribute('href'))")
    return {link for link in found if re.fullmatch(r"/admin/[\w/]*", link) and "logout" not in link}


def test_every_page_opens_without_a_complaint(olga: Watched) -> None:
    page = olga.page
    waiting, seen = sorted(links(page)), {"/admin/"}
    while waiting:
        address = waiting.pop(0)
        if address in seen or re.search(r"/\d+/", address) or address.endswith(("/logout/", "/jsi18n/")):
            continue
        seen.add(address)
        response = page.goto(address)
        assert response is not None and response.status == 200, address
        assert page.title()
        waiting += sorted(links(page) - seen)
    assert len(seen) >= NUM_PAGES, seen
    assert olga.complaints == []


def test_a_new_keys_secret_is_seen_once(olga: Watched, console: Stack) -> None:
    page = olga.page
    page.goto("/admin/tenants/tenant/")
    page.click("text=alice")
    page.wait_for_url(re.compile(r"/tenant/\d+/"))
    tenant_id = re.search(r"/tenant/(\d+)/", page.url)
    assert tenant_id is not None
    page.goto(f"/admin/api_keys/apikey/add/?tenant={tenant_id[1]}")
    page.fill("input[name=name]", "from the browser")
    with page.expect_navigation():
        page.click("[name=_save]")
    shown = re.findall(r"octavo_[a-z0-9]+_[A-Za-z0-9_-]+", page.content())
    assert len(set(shown)) == 1
    secret = shown[0]
    assert secret.split("_")[1] in page.content()
    for address in ("/admin/api_keys/apikey/", "/admin/audit/auditrecord/", "/admin/"):
        page.goto(address)
        assert secret not in page.content() and secret.split("_")[2] not in page.content()
    page.go_back()
    page.goto("/admin/api_keys/apikey/?q=" + secret.split("_")[1])
    with page.expect_navigation():
        page.click(f"text={secret.split('_')[1]}")
    assert secret.split("_")[2] not in page.content()
    assert olga.complaints == []


def test_a_stranger_sees_the_login_and_nothing_else(watched: Watched) -> None:
    page = watched.page
    for address in ("/admin/", "/admin/usage/ledgerentry/", "/admin/workers/"):
        page.goto(address)
        assert "/admin/login/" in page.url
    page.fill("input[name=username]", OPERATOR)
    page.fill("input[name=password]", "not her password")
    page.click("button[type=submit]")
    page.wait_for_selector("text=Please enter the correct username and password")
    assert "/admin/login/" in page.url
    assert watched.complaints == []
