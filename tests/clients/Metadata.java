import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.lang.reflect.Method;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/** Prints what JDBC's DatabaseMetaData answers, and what statements of several kinds give. */
public class Metadata {
    static String cause(Throwable error) {
        Throwable inner = error instanceof InvocationTargetException ? error.getCause() : error;
        String state = inner instanceof java.sql.SQLException ? ((java.sql.SQLException) inner).getSQLState() + " " : "";
        return "error: " + state + String.valueOf(inner.getMessage()).split("\n")[0];
    }

    static void rows(String title, ResultSet found) throws Exception {
        ResultSetMetaData shape = found.getMetaData();
        List<String> names = new ArrayList<>();
        for (int i = 1; i <= shape.getColumnCount(); i++) {
            names.add(shape.getColumnLabel(i) + ":" + shape.getColumnTypeName(i) + ":" + shape.getColumnClassName(i));
        }
        System.out.println("## " + title);
        System.out.println(names);
        List<String> lines = new ArrayList<>();
        while (found.next()) {
            List<String> row = new ArrayList<>();
            for (int i = 1; i <= shape.getColumnCount(); i++) {
                row.add(String.valueOf(found.getString(i)));
            }
            lines.add(String.join(" | ", row));
        }
        Collections.sort(lines);
        lines.forEach(System.out::println);
    }

    interface Asked {
        ResultSet get() throws Exception;
    }

    static void ask(String title, Asked asked) {
        try (ResultSet found = asked.get()) {
            rows(title, found);
        } catch (Exception error) {
            System.out.println("## " + title + "\n" + cause(error));
        }
    }

    /** Every method without arguments. */
    static void plain(DatabaseMetaData meta) {
        Method[] methods = DatabaseMetaData.class.getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            Class<?> result = method.getReturnType();
            boolean simple = result == String.class || result == int.class || result == boolean.class || result == long.class;
            if (method.getParameterCount() == 0 && simple) {
                try {
                    System.out.println(method.getName() + " = " + method.invoke(meta));
                } catch (Exception error) {
                    System.out.println(method.getName() + " = " + cause(error));
                }
            }
        }
    }

    static void lists(DatabaseMetaData m, String schema) {
        ask("getSchemas", () -> m.getSchemas(null, schema));
        ask("getTableTypes", m::getTableTypes);
        ask("getClientInfoProperties", m::getClientInfoProperties);
        ask("getTypeInfo", m::getTypeInfo);
        ask("getTables", () -> m.getTables(null, schema, "%", null));
        ask("getTables of a type", () -> m.getTables(null, schema, "%", new String[] {"TABLE", "MATERIALIZED VIEW"}));
        ask("getTables by pattern", () -> m.getTables(null, schema, "c_st%", null));
        ask("getColumns", () -> m.getColumns(null, schema, "%", "%"));
        ask("getColumnPrivileges", () -> m.getColumnPrivileges(null, schema, "customer", "%"));
        ask("getTablePrivileges", () -> m.getTablePrivileges(null, schema, "%"));
        ask("getFunctions", () -> m.getFunctions(null, schema, "%"));
        ask("getFunctionColumns", () -> m.getFunctionColumns(null, schema, "%", "%"));
        ask("getProcedures", () -> m.getProcedures(null, schema, "%"));
        ask("getProcedureColumns", () -> m.getProcedureColumns(null, schema, "%", "%"));
        ask("getUDTs", () -> m.getUDTs(null, schema, "%", null));
        ask("getSuperTables", () -> m.getSuperTables(null, schema, "%"));
        ask("getSuperTypes", () -> m.getSuperTypes(null, schema, "%"));
        ask("getAttributes", () -> m.getAttributes(null, schema, "%", "%"));
        ask("getPseudoColumns", () -> m.getPseudoColumns(null, schema, "%", "%"));
        ask("getCrossReference", () -> m.getCrossReference(null, schema, "customer", null, schema, "sale"));
        for (String table : new String[] {"customer", "sale", "item", "Odd Names", "measured", "totals", "rich", "booked"}) {
            ask("getPrimaryKeys " + table, () -> m.getPrimaryKeys(null, schema, table));
            ask("getIndexInfo " + table, () -> m.getIndexInfo(null, schema, table, false, true));
            ask("getIndexInfo unique " + table, () -> m.getIndexInfo(null, schema, table, true, false));
            ask("getImportedKeys " + table, () -> m.getImportedKeys(null, schema, table));
            ask("getExportedKeys " + table, () -> m.getExportedKeys(null, schema, table));
            ask("getBestRowIdentifier " + table, () -> m.getBestRowIdentifier(null, schema, table, 2, true));
            ask("getVersionColumns " + table, () -> m.getVersionColumns(null, schema, table));
        }
    }

    static void statements(Connection c) throws Exception {
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            s.execute("CREATE TABLE shop.changing (id int PRIMARY KEY, name text, amount numeric(8, 2), at timestamp)");
            ResultSet r = s.executeQuery("SELECT id, name, amount, at FROM shop.changing");
            for (int i = 1; i <= 3; i++) {
                r.moveToInsertRow();
                r.updateInt(1, i);
                r.updateString("name", "row " + i);
                r.updateBigDecimal(3, new java.math.BigDecimal("1." + i));
                r.updateTimestamp(4, java.sql.Timestamp.valueOf("2024-01-02 03:04:05.678"));
                r.insertRow();
            }
            r.close();
            r = s.executeQuery("SELECT * FROM shop.changing ORDER BY id");
            r.absolute(2);
            r.updateString("name", "changed");
            r.updateRow();
            r.last();
            r.deleteRow();
            r.close();
        }
        ask("updated", () -> c.createStatement().executeQuery("SELECT * FROM shop.changing"));
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("INSERT INTO shop.changing VALUES (?, ?, ?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 10; i < 25; i++) {
                p.setInt(1, i);
                p.setString(2, "batch");
                p.setObject(3, null);
                p.setObject(4, java.time.LocalDateTime.of(2024, 5, 6, 7, 8, i));
                p.addBatch();
            }
            System.out.println("batch " + Arrays.toString(p.executeBatch()));
            rows("generated", p.getGeneratedKeys());
        }
        try (Statement s = c.createStatement()) {
            s.setFetchSize(4);
            ResultSet r = s.executeQuery("SELECT id FROM shop.changing ORDER BY id");
            int sum = 0;
            while (r.next()) {
                sum += r.getInt(1);
            }
            System.out.println("fetched in parts " + sum);
        }
        Savepoint before = c.setSavepoint("before");
        try (Statement s = c.createStatement()) {
            s.execute("INSERT INTO shop.changing VALUES (1)");
        } catch (Exception error) {
            System.out.println(cause(error));
        }
        c.rollback(before);
        try (Statement s = c.createStatement()) {
            System.out.println("deleted " + s.executeUpdate("DELETE FROM shop.changing WHERE id > 20"));
        }
        c.commit();
        c.setAutoCommit(true);
        try (PreparedStatement p = c.prepareStatement("SELECT ?::int + 1, name, amount FROM shop.changing WHERE id = ? AND name = ?")) {
            ParameterMetaData parameters = p.getParameterMetaData();
            for (int i = 1; i <= parameters.getParameterCount(); i++) {
                System.out.println("parameter " + parameters.getParameterTypeName(i) + " " + parameters.getParameterType(i));
            }
            ResultSetMetaData shape = p.getMetaData();
            for (int i = 1; i <= shape.getColumnCount(); i++) {
                System.out.println("column " + shape.getColumnName(i) + " " + shape.getColumnTypeName(i) + " " + shape.getTableName(i)
                    + " " + shape.isNullable(i) + " " + shape.isAutoIncrement(i) + " " + shape.getPrecision(i) + " " + shape.getScale(i));
            }
            for (int i = 0; i < 8; i++) {
                p.setInt(1, i);
                p.setInt(2, 2);
                p.setString(3, "changed");
                rows("prepared " + i, p.executeQuery());
            }
        }
        try (java.sql.CallableStatement call = c.prepareCall("{? = call shop.add(?, ?)}")) {
            call.registerOutParameter(1, Types.INTEGER);
            call.setInt(2, 40);
            call.setInt(3, 2);
            call.execute();
            System.out.println("function " + call.getInt(1));
        }
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery("SELECT pg_sleep(30)");
        } catch (Exception error) {
            System.out.println(cause(error));
        }
        ask("types", () -> c.createStatement().executeQuery("SELECT * FROM shop.customer ORDER BY id"));
        try (ResultSet r = c.createStatement().executeQuery("SELECT * FROM shop.customer ORDER BY id")) {
            while (r.next()) {
                List<String> row = new ArrayList<>();
                for (int i = 1; i <= r.getMetaData().getColumnCount(); i++) {
                    try {
                        Object value = r.getObject(i);
                        row.add(value == null ? "null" : value.getClass().getSimpleName() + " " + (value instanceof byte[] ? Arrays.toString((byte[]) value) : value));
                    } catch (Exception error) {
                        row.add(cause(error));
                    }
                }
                System.out.println(row);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        java.util.TimeZone.setDefault(java.util.TimeZone.getTimeZone("UTC"));
        try (Connection c = DriverManager.getConnection(args[0])) {
            DatabaseMetaData meta = c.getMetaData();
            plain(meta);
            lists(meta, "shop");
            ask("getCatalogs", meta::getCatalogs);
            ask("getColumns pg_type", () -> meta.getColumns(null, "pg_catalog", "pg_index", "%"));
            ask("getFunctions lower", () -> meta.getFunctions(null, "pg_catalog", "repeat"));
            ask("getFunctionColumns repeat", () -> meta.getFunctionColumns(null, "pg_catalog", "repeat", "%"));
            statements(c);
        }
    }
}
