"""The live page in Chromium: on a desk, on a phone and in the dark, with and without a token."""

import http.client
import json

import service_tools as tools
from browser_tools import LOOKS, SCREENSHOTS, browser
from playwright.sync_api import expect

REFUSED = "401"  # Chromium reports the answer that asks for a token
BAD = "<img src=x onerror=alert(1)>"  # names are users' text


def cells(page):
    return page.evaluate("[...document.querySelectorAll('#rows tr')].map(row => row.cells[0].textContent)")


def post(port, path, **content):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"content-type": "application/json", "authorization": f"Bearer {tools.TOKENS['play']}"}
    connection.request("POST", path, json.dumps(content), headers)
    assert connection.getresponse().status == 200
    connection.close()


def test_page_shows_campaigns_and_finds_them(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("\n".join(f"{role} {token}" for role, token in tools.TOKENS.items()))
    names = [*(f"campaign {i}" for i in range(12)), BAD]
    options = "--tokens", str(tokens)
    with browser() as chromium, tools.process(tmp_path, tmp_path / "fleet", *options, certify=True) as (_, port):
        for _ in range(30):
            post(port, "/observe", names=names, rounds=tools.stacked(range(len(names))))
        address = f"http://127.0.0.1:{port}/"
        for look, (width, height, scheme) in LOOKS.items():
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            said, asked = [], []
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.goto(address)
            page.wait_for_selector("#ask:not([hidden])")
            page.wait_for_function("document.querySelector('#said').textContent.includes('token is missing')")
            assert not cells(page)
            page.fill("#token", "another")
            page.press("#token", "Enter")
            expect(page.locator("#said")).to_contain_text("this token is unknown")
            page.fill("#token", tools.TOKENS["read"])
            page.press("#token", "Enter")
            expect(page.locator("#rows tr")).to_have_count(13)
            assert page.locator("#budgets").is_hidden()  # this learner has none
            assert cells(page) == names and "13" in page.text_content("#totals") and not page.text_content("#said")
            page.click("text=campaign 3")
            expect(page.locator("#one svg")).to_have_count(2)  # spending against plan, and its multiplier
            assert "Regret so far, proven" in page.text_content("#one")
            assert "spent minus plan" in page.text_content("#one") and "alarms" in page.text_content("#totals")
            page.screenshot(path=SCREENSHOTS / f"service-{look}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.click("#one button")
            expect(page.locator("#one")).to_be_hidden()
            page.fill("#search", "N 1")
            expect(page.locator("#rows tr")).to_have_count(3)
            assert cells(page) == ["campaign 1", "campaign 10", "campaign 11"]
            assert all(REFUSED in text for text in said), said
            assert all(url.startswith(address) for url in asked if url != "data:,"), asked
            page.close()


def test_page_shows_where_the_budget_of_each_campaign_stands(tmp_path):
    budgets = {"spring": 0.5, "summer": 2.0, "a campaign with a long name, of the whole year": 12345.0, "none": 0.0}
    names, options = list(budgets), {"kind": "offers", "pending": 3}
    with browser() as chromium, tools.process(tmp_path, tmp_path / "fleet", **options) as (_, port):
        post(port, "/begin", names=names, budgets=list(budgets.values()))
        for _ in range(2):
            post(port, "/decide", names=names, requests={"v": [1.0] * 4, "c": [0.4, 0.4, 400, 0.4]})
        post(port, "/observe", names=names, tickets=["0"] * 4)
        for look, (width, height, scheme) in LOOKS.items():
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            said = []
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on("console", lambda message, said=said: said.append(message.text))
            page.goto(f"http://127.0.0.1:{port}/")
            expect(page.locator("#rows tr")).to_have_count(4)
            column = page.evaluate("[...document.querySelectorAll('#rows tr')].map(row => row.cells[3].textContent)")
            assert column == ["0.4 of 0.5", "0.4 of 2", "400 of 12,345", "0 of 0"]
            assert "budget spent400.8 of 12,347.5" in page.text_content("#totals")
            page.click("text=spring")
            expect(page.locator("#one .bar")).to_have_count(1)
            assert "1 round, 1 pending" in page.text_content("#one")
            assert "0.4 spent and 0.1 reserved of 0.5" in page.text_content("#one")
            parts = page.evaluate("[...document.querySelectorAll('#one .bar i')].map(part => part.style.width)")
            assert [round(float(part.rstrip("%"))) for part in parts] == [80, 20]  # spent, reserved
            shown = page.evaluate("[1234567.25, 12345.678, 999.1234, 0.0004].map(shown)")
            assert shown == ["1,234,567", "12,345.7", "999.123", "4.00e-4"]
            over = "budgets({budget: [0], spent: [%s], reserved: [0], planned: [0]})[0].used > 1"
            assert page.evaluate(over % 0.1) and not page.evaluate(over % 0)
            page.screenshot(path=SCREENSHOTS / f"service-budgets-{look}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert all("422" in text for text in said), said  # Chromium reports that there is no certificate
            page.close()
