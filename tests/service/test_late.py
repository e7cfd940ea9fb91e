"""Late feedback and budgets of a fleet over HTTP."""

import asyncio

import numpy as np
import service_tools as tools
from service_tools import figures, sentence


def test_tickets_wait_and_count_once():
    async def play(client):
        one = (await client.post("/decide", name="a", ticket="order 1")).json()
        assert one["ticket"] == "order 1" and one["rounds"] == 0
        assert (await client.post("/decide", name="a", ticket="order 1")).json() == one  # after a lost answer
        many = (await client.post("/decide", names=["a", "b", "a"])).json()
        assert many["tickets"] == ["1", "0", "2"] and np.array(many["decisions"]).shape == (3, 4)
        assert "3 rounds of 'a' are pending" in sentence(await client.post("/decide", name="a"), 409)
        rounds = tools.stacked(range(2))
        body = {"names": ["a", "a"], "rounds": rounds, "tickets": ["2", "order 1"], "labels": ["late", None]}
        first = (await client.post("/observe", **body)).json()
        again = (await client.post("/observe", **body)).json()
        assert first == again and first["rounds"] == [2, 2] == it.rounds(["a", "a"]).tolist()
        retried = [client.post("/observe", name="b", ticket="0", rounds=tools.a_round(5)) for _ in range(20)]
        assert {answer.json()["rounds"] for answer in await asyncio.gather(*retried)} == {1}
        assert (await client.post("/skip", name="a", ticket="1")).status_code == 200
        assert "was skipped" in sentence(
            await client.post("/observe", name="a", ticket="1", rounds=tools.a_round(5)), 409
        )
        assert "never given" in sentence(await client.post("/observe", name="a", ticket="x", rounds={}), 409)
        assert "give tickets, one" in sentence(await client.post("/observe", name="a", rounds=tools.a_round(5)), 422)
        assert "and not at" in sentence(
            await client.post("/observe", name="a", ticket="1", rounds=tools.a_round(5), at=0), 422
        )
        assert "for each of the 2 names" in sentence(await client.post("/decide", names=["a", "b"], ticket="x"), 422)
        assert "no campaign 'z'" in sentence(await client.post("/observe", name="z", ticket="x", rounds={}), 404)
        history = (await client.get("/history/a")).json()
        assert history["label"] == ["late", ""]
        metrics = (await client.get("/metrics")).text
        assert "cocoax_pending 0.0" in metrics

    with tools.fleet(pending=3) as it:
        tools.asked(play, it)


def test_budgets_of_campaigns_and_where_they_stand():
    async def play(client):
        begun = await client.post("/begin", names=["spring", "summer"], budgets=[0.5, 2])
        assert begun.json() == {"names": ["spring", "summer"]}
        assert (await client.post("/begin", name="spring", budgets=0.5)).status_code == 200
        assert "other budgets" in sentence(await client.post("/begin", name="spring", budgets=3), 409)
        asked = {"v": [1.0, 1.0], "c": [0.4, 0.4]}
        first = (await client.post("/decide", names=["spring", "summer"], requests=asked)).json()
        assert np.allclose(first["decisions"], [[0, 1], [0, 1]])
        second = (await client.post("/decide", name="spring", requests={"v": 1.0, "c": 0.4})).json()
        assert 0.24 < second["decisions"][1] <= 0.25  # what waits is reserved
        assert (await client.post("/observe", name="spring", ticket="0")).json()["rounds"] == 1
        about = (await client.get("/summary/spring")).json()
        assert about["budget"] == [0.5] and about["pending"] == 1
        assert np.allclose([about["spent"], about["reserved"]], [[0.4], [0.1]])
        assert (await client.post("/change", name="spring", budgets=0.9)).status_code == 200
        third = (await client.post("/decide", name="spring", requests={"v": 1.0, "c": 0.4})).json()
        assert third["decisions"][1] == 1.0
        assert "no campaign 'winter'" in sentence(await client.post("/change", name="winter", budgets=1), 404)
        assert "budgets must be numbers >= 0" in sentence(await client.post("/change", name="spring", budgets=-1), 422)
        assert "budgets must be given" in sentence(await client.post("/change", name="spring"), 422)
        assert "must be numbers" in sentence(await client.post("/change", name="spring", budgets=True), 422)
        assert "not empty" in sentence(await client.post("/skip", name="spring", ticket=""), 422)
        return (await client.get("/metrics?campaigns=spr")).text

    with tools.offers(pending=3) as it:
        text = tools.asked(play, it)
        told = figures(text)
        whole, spring = it.summary(), it.summary("spring")
        for name in ("budget", "planned", "spent", "reserved"):
            assert told[f"cocoax_{name}", "0"] == whole[name][0]
            value = told[f"cocoax_campaign_{name}", "0", "spring"]  # labels are sorted
            assert value == spring[name][0]
        assert told["cocoax_campaign_violation", "spring", "constraint"] == spring["violation"]["constraint"]
        assert ("cocoax_campaign_spent", "0", "summer") not in told and told["cocoax_pending",] == 3


def test_errors_are_about_the_round_of_a_campaign_and_not_about_a_batch():
    async def play(client):
        await client.post("/observe", name="a", rounds=tools.a_round(0))
        for names in (["b"], ["a", "b"]):
            rounds = {key: [value] * len(names) for key, value in tools.a_round(1).items()}
            rounds["value"] = [[1, 2, 3]] * len(names)
            said = sentence(await client.post("/observe", names=names, rounds=rounds), 422)
            assert said == f"rounds of {names[0]!r}['value'] must have the shape (4,), got (3,)"
        single = sentence(await client.post("/observe", name="b", rounds=tools.a_round(1) | {"value": [1, 2]}), 422)
        assert "of 'b'['value'] must have the shape (4,), got (2,)" in single
        played = await client.post("/observe", name="b", rounds=tools.a_round(1), played=[0.1])
        assert "played of 'b' must have the shape (4,), got (1,)" in sentence(played, 422)

    with tools.fleet() as it:
        tools.asked(play, it)
