"""Sessions over HTTP: a ticket counts once however often it is sent; certificates and alarms."""

import asyncio

import jax
import numpy as np
import pytest
import service_tools as tools
import session_tools
from service_tools import figures

import cocoax as cx
from cocoax.errors import SessionError
from cocoax.service.run import load
from cocoax.service.sessions import Sessions


def sessions(folder=None):
    late = session_tools.session(None if folder is None else folder / "late", "DPP", pending=4, certify=True)
    plain = session_tools.session(None if folder is None else folder / "plain", "DPP", certify=True)
    return Sessions({"late": late, "plain": plain})


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
