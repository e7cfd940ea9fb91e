"""Sessions over HTTP: a ticket counts once however often it is sent; certificates, alarms and limits."""

import asyncio

import jax
import numpy as np
import pytest
import service_tools as tools
import session_tools
from prometheus_client.parser import text_string_to_metric_families

import cocoax as cx
from cocoax.errors import SessionError
from cocoax.service.errors import Refused
from cocoax.service.rate import RateLimit
from cocoax.service.run import load
from cocoax.service.sessions import Sessions


def sessions(folder=None):
    late = session_tools.session(None if folder is None else folder / "late", "DPP", pending=4, certify=True)
    plain = session_tools.session(None if folder is None else folder / "plain", "DPP", certify=True)
    return Sessions({"late": late, "plain": plain})


def figures(text):
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_a_ticket_counts_once_and_its_answer_comes_again(tmp_path):
    async def play(client):
        first = (await client.post("/decide", name="late", ticket="order 1")).json()
        again = (await client.post("/decide", name="late", ticket="order 1")).json()
        assert first == again and first["ticket"] == "order 1" and first["rounds"] == 0
        sent = {"name": "late", "ticket": "order 1", "rounds": tools.a_round(0)}
        answers = await asyncio.gather(*(client.post("/observe", **sent) for _ in range(5)))
        assert len({answer.text for answer in answers}) == 1 and answers[0].json()["rounds"] == 1
        named = (await client.post("/decide", name="late")).json()["ticket"]
        assert (await client.post("/skip", name="late", ticket=named)).status_code == 200
        refused = await client.post("/observe", name="late", ticket=named, rounds=tools.a_round(1))
        assert refused.status_code == 422 and "was skipped" in refused.json()["error"]

    with sessions(tmp_path) as it, session_tools.session(None, "DPP", pending=4, certify=True) as alone:
        tools.asked(play, it)
        alone.decide("order 1")
        alone.observe(session_tools.a_round(0), ticket="order 1")
        alone.decide("1")
        alone.skip("1")
        assert session_tools.bits(it["late"]) == session_tools.bits(alone) and it["plain"].rounds == 0


def test_sessions_are_asked_as_campaigns_are():
    async def play(client):
        decided = (await client.post("/decide", names=["plain"])).json()
        assert np.array_equal(decided["decisions"], [it["plain"].decide()])
        for _ in range(2):
            answer = await client.post("/observe", name="plain", at=0, rounds=tools.a_round(0))
            assert answer.json()["rounds"] == 1
        assert (await client.post("/observe", name="plain", at=5, rounds=tools.a_round(0))).status_code == 409
        for path, content, status in (
            ("/decide", {"name": "nobody"}, 404),
            ("/decide", {"names": ["plain", "late"]}, 422),
            ("/decide", {"name": "plain", "ticket": "a"}, 422),
            ("/decide", {"name": "plain", "ticket": ""}, 422),
            ("/end", {"name": "plain"}, 422),
            ("/observe", {"name": "late", "rounds": tools.a_round(0)}, 422),
        ):
            answer = await client.post(path, **content)
            assert answer.status_code == status and list(answer.json()) == ["error"], answer.text
        bound = (await client.get("/certificate/plain")).json()
        assert bound["regret"] == float(it["plain"].certificate().regret) and bound["rounds"] == 1
        assert (await client.get("/history/plain")).json()["round"] == [0]
        found = (await client.get("/campaigns?search=la")).json()
        assert found["found"] == 2 and found["campaigns"][0]["alarm"] is None
        summary = (await client.get("/summary")).json()
        assert summary["rounds"] == 1 and summary["alarms"] == 0
        told = figures((await client.get("/metrics")).text)
        assert told["cocoax_alarms",] == 0 and told["cocoax_regret_bound",] >= bound["regret"] - 1e-9
        assert told["cocoax_campaigns",] == 2

    with sessions() as it:
        tools.asked(play, it)


def test_fleets_take_no_tickets_and_certify_if_asked():
    async def play(client):
        refused = await client.post("/decide", name="a", ticket="t")
        assert refused.status_code == 422 and "begin the fleet with pending=" in refused.json()["error"]
        await client.post("/observe", name="a", rounds=tools.a_round(0))
        bound = (await client.get("/certificate/a")).json()
        assert bound["regret"] == float(it.certificate("a").regret) and not bound["infeasible"]
        assert (await client.get("/certificate/b")).status_code == 404
        told = figures((await client.get("/metrics")).text)
        assert np.isclose(told["cocoax_regret_bound",], it.regret_bounds(["a"]).sum())

    with tools.fleet(certify=True) as it:
        tools.asked(play, it)


def test_a_client_that_asks_too_often_waits():
    async def play(client):
        answers = await asyncio.gather(*(client.get("/summary") for _ in range(30)))
        statuses = [answer.status_code for answer in answers]
        assert 20 <= statuses.count(200) <= 25 and statuses.count(429) == 30 - statuses.count(200)
        late = next(answer for answer in answers if answer.status_code == 429)
        assert "too often" in late.json()["error"] and late.headers["retry-after"] == "1"
        assert (await client.get("/health")).status_code == 200

    tools.asked(play, rate=10.0)


def test_a_client_is_not_another_one_because_it_writes_its_header_otherwise():
    async def play(client):
        token = tools.TOKENS["read"]
        for number in range(6):
            header = {"authorization": ("bearer", "Bearer", "BEARER")[number % 3] + " " * (1 + number) + token}
            answer = await client.http.get("/summary", headers=header)
            assert answer.status_code == (200 if number < 2 else 429)

    async def without_tokens(client):
        answers = [await client.http.get("/summary", headers={"authorization": f"Bearer {i}"}) for i in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 429, 429]

    tools.asked(play, tokens=tools.TOKENS, rate=1.0)
    tools.asked(without_tokens, rate=1.0)


def test_less_than_one_request_a_second_can_be_allowed():
    async def play(client):
        assert (await client.get("/summary")).status_code == 200
        assert (await client.get("/summary")).status_code == 429

    tools.asked(play, rate=0.01)


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not():
    async def play(client):
        header = {"authorization": "Bearer " + "x" * 20}
        wrong = [(await client.http.get("/summary", headers=header)).status_code for _ in range(230)]
        assert wrong[:200] == [401] * 200 and 429 in wrong[200:]
        header = {"authorization": f"Bearer {tools.TOKENS['read']}"}
        assert (await client.http.get("/summary", headers=header)).status_code == 200

    tools.asked(play, tokens=tools.TOKENS)


def test_a_bucket_fills_with_time():
    now = 0.0
    rate = RateLimit(2, 4, clock=lambda: now)
    for second, allowed in ((0.0, 4), (1.0, 2), (1.5, 1), (100.0, 4)):
        now = second
        for _ in range(allowed):
            rate.check("me", "no")
        with pytest.raises(Refused):
            rate.check("me", "no")
    rate.check("somebody else", "no")


def test_a_file_may_define_sessions(tmp_path):
    file = tmp_path / "served.py"
    file.write_text("import service_tools, session_tools\nsession = session_tools.session(None, 'DPP')\nexample = 1")
    it, example = load(file)
    assert it.names == ("session",) and example == 1
    file.write_text("sessions = {'a': 3}")
    with pytest.raises(SessionError, match="a dict of names and sessions"):
        load(file)


def test_whole_numbers_are_whole_in_a_session_that_had_some_whatever_others_had():
    problem = cx.Problem(cx.domains.Box([0.0], [1.0]), lambda x, r: -r["v"] * x[0])

    def session():
        return cx.Session(problem, session_tools.learner("DPP"), key=jax.random.key(0), horizon=9)

    async def play(client):
        for name in ("old", "new"):
            assert (await client.post("/observe", name=name, rounds={"v": 1.0, "count": 2})).status_code == 200

    with Sessions({"old": session(), "new": session()}) as it:
        it["old"].observe({"v": 1.0, "count": np.int32(2)})
        tools.asked(play, it)
        kinds = [it[name].schema["dict"]["count"]["dtype"] for name in ("old", "new")]
        assert kinds == ["int32", "float64"]
